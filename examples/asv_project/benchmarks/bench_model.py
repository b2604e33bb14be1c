"""What the project promises its users about time and memory."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

if find_spec("model") is None:  # of `--python=same`; asv installs the commit that it measures
    sys.path.insert(0, str(Path(__file__).parents[1]))

import model

from fnarray.testing.asv import benchmark

TrainStep = benchmark(model.train_step, model.batch)
