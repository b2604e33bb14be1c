"""Threads: how many there may be, shards that run beside each other, BLAS kept to one."""
