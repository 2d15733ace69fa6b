"""`hvpa init`."""
