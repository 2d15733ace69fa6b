"""From the bytes of a watched object to a compact read-model."""
