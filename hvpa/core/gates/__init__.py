"""Reasons that hold a wanted change back, in order."""
