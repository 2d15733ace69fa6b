"""The operator's log on standard error."""
