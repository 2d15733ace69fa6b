"""The commands that write Hvpas."""
