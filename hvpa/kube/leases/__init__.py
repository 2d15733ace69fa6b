"""Leader election, and the shards that several replicas share."""
