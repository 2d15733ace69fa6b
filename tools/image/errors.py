"""The error of this package."""


class ImageError(Exception):
    """The image can't be built; the text explains how to fix that."""
