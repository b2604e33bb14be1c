"""The GPU target without a GPU: its kernels read by the processor, against the processor target."""
