"""Leader election, and shards of the work that several replicas share."""
