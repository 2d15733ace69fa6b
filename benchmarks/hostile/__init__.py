"""What users who mean ill can cost the operator and each other."""
