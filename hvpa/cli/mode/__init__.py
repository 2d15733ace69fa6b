"""Pausing and resuming Hvpas: the commands that write."""
