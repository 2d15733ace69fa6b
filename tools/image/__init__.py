"""The operator's image without a container engine: Debian's Python, the wheels of requirements.lock, and hvpa."""
