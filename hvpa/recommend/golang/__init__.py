"""Go's arithmetic and quantities, as far as the recommenders depend on them."""
