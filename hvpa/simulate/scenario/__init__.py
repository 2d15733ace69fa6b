"""Reads scenario files."""
