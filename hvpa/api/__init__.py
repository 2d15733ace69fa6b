"""Pydantic models of Hvpa, its CRD as data, quantities, and narrow read models of other objects.

This package makes no decisions, fetches nothing and reads no clock. Its modules import only each other, pydantic,
msgspec and PyYAML.
"""
