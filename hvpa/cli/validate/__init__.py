"""`hvpa validate`: checks of manifests, offline."""
