"""What `make` runs beside the package itself. Nothing here is installed."""
