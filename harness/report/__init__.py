"""Reports: one small writer a format, all of them from the same `CellResult`s."""
