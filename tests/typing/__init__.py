"""What type checkers know of the package, and programs that show it."""
