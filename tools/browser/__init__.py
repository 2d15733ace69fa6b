"""Headless Chromium: finding it, and opening pages in it for tests and for pictures of the docs."""
