"""The control plane: its programs, their flags and manifests, start and end."""
