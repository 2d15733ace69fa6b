"""A step of an axis, for both strategies: from the wanted value through the gates to the applied value."""
