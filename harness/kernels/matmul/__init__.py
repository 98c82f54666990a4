"""Matrix product c = a @ b of 16-bit floats, accumulated in float32."""
