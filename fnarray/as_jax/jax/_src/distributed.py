"""``jax._src.distributed``: the state of one process."""

from __future__ import annotations

from types import SimpleNamespace

global_state = SimpleNamespace(
    process_id=0, num_processes=1, service=None, client=None, preemption_sync_manager=None,
    coordinator_address=None, partition_index=None,
)  # fmt: skip
