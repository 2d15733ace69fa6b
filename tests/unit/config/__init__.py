"""What `config/` deploys, read as data: no cluster needed."""
