"""Reading a scenario file."""
