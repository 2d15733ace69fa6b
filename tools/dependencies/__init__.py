"""The project's dependencies: lock files, licences, audits, and the bill of materials."""
