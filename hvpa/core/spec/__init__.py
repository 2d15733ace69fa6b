"""What is wrong or doubtful in a spec and no schema can express."""
