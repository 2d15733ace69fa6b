"""The control plane itself: its programs, their flags and manifests, start and end."""
