"""Building the programs of the control plane from Go modules, once, into the user's cache."""
