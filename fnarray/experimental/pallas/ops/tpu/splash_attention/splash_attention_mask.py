"""``splash_attention_mask``: none of its names are there; see the package."""
