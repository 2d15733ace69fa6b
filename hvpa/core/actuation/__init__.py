"""Brings the decided size to running pods without replacing them (DESIGN 11)."""
