"""The error of this package."""


class ImageError(Exception):
    """Why there is no image; its text says what to do."""
