"""What `hvpa explain -o json` prints, and its schema."""
