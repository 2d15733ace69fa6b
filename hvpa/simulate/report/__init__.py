"""What a simulation found: figures, table, JSON, page, picture."""
