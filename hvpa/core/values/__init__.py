"""Values of the decision without knowledge of any object: the clock, weights, whole numbers."""
