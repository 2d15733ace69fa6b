"""One step of an axis, for both strategies: from a wanted value through the gates to the set one."""
