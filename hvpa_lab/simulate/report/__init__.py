"""Reports of a simulation: figures, table, JSON, HTML page."""
