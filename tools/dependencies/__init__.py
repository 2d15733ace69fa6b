"""What the project depends on: lock files, licences, audits, and the bill of materials."""
