"""The path of `Trajectory` as mathematics: from total demand to replicas and sizes."""
