"""A path as a picture."""
