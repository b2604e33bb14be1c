"""NVIDIA GPUs as a target; nothing here is imported unless a program asks for it."""
