"""What holds a wanted change back, in order."""
