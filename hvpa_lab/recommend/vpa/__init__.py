"""An exact model of the VPA recommender."""
