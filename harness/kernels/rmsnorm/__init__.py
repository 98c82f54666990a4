"""RMSNorm, y = x * rsqrt(mean(x^2) + eps) * (offset + w), in the four forms used in the field."""
