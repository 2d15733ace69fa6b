"""The operator with very many Hvpas."""
