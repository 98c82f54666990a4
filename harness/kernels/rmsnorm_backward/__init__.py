"""Gradients of RMSNorm: of its input, and partial sums of its weight's."""
