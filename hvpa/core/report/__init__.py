"""What was decided, for people: status, conditions, events."""
