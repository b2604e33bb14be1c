"""What the project promises its users about time and memory."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # a project that is installed needs no such line

import model

from fnarray.testing.asv import benchmark

TrainStep = benchmark(model.train_step, model.batch)
