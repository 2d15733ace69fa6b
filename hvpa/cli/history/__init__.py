"""What changed of one Hvpa, when and why."""
