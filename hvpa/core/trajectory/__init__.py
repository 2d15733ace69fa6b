"""The strategy `Trajectory`: both axes solved together along a path (DESIGN 5.4, 5.5)."""
