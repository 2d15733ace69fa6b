"""What is learnt from a history."""
