"""A decision as people see it: status, conditions, events."""
