"""Right answers for the shipped kernels, one module each; `harness.execute.reference` is the registry."""
