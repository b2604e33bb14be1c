"""What operations are declared with: declarations, rules, calls and checks; no operation."""
