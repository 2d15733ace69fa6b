"""The laboratory: commands that simulate, advise and draw. The operator runs without it (docs/architecture.md)."""
