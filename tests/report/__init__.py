"""Tests of reports: what they say, and how they look and behave in a browser."""
