"""The state of one Hvpa at a glance, and where each of its pods stands."""
