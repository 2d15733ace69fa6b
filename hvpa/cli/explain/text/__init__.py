"""A decision as text for people."""
