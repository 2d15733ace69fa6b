"""Errors and likely mistakes in a spec that a schema can't express."""
