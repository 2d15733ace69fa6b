"""Headless Chromium: where it is found, and the pages that are opened in it for tests and for pictures of the docs."""
