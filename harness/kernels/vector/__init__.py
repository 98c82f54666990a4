"""Element by element over vectors."""
