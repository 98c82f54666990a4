"""Layer norm, y = (x - mean) * rsqrt(var + eps) * w + b over rows."""
