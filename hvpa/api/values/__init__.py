"""Plain values and their texts: quantities, durations, instants, prices."""
