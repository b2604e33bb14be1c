"""The emitted text of a corpus of programs, compared between two commits (tinygrad's replay)."""
