"""The control: a kernel so small that a toolchain which cannot compile it is broken."""
