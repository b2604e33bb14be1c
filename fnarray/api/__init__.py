"""What users call on functions: compile, trace, inspect. The root package has the names."""
