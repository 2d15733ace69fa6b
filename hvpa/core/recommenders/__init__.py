"""The HPA and the VPA of an Hvpa: which objects it reads and owns, and their recommendations."""
