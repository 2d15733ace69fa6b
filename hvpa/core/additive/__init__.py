"""The strategy `Additive`: both axes blended by the weight of an interval (DESIGN 5.1, 5.2)."""
