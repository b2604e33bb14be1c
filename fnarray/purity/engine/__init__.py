"""The analysis: a function is run on abstract values, and every effect is reported."""
