"""Transforms of functions and graphs: derivatives, their transposition, batching.

Each is a trace, which says what operations do while a function runs: a function is transformed by
running it there, a graph by recording what running it there does. None knows an operation's name;
the rules are the operations' own.
"""
