"""How the size that was decided reaches running pods without replacing them (DESIGN 11)."""
