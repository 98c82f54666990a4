"""Trace kernels to bytecode and compile bytecode to cubins."""
