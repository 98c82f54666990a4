"""Regression lab for CUDA Tile compilers: plan, compile, inspect, execute, judge, report."""

__version__ = "0.1.0"
