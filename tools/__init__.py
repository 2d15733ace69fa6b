"""Programs that `make` runs for development. Nothing here is installed."""
