"""Measurements on a real node: delays of resizes, of larger limits after an OOM, of the load's signals, and of serving
a load that jumps."""
