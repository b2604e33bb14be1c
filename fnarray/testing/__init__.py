"""What programs that use fnarray test and measure themselves with."""
