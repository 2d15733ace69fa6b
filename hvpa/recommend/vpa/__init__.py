"""The VPA recommender, exactly."""
