"""How the operator does with very many Hvpas."""
