"""``splash_attention_kernel``: none of its names are there; see the package."""
