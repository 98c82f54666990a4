"""Reduction: from a finding to the smallest kernel and configuration that still show it."""
