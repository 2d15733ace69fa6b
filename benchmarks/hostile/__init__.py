"""The cost of malicious users for the operator and for each other."""
