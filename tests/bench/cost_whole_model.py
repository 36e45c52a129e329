# SPDX-License-Identifier: Apache-2.0
"""One whole model on each engine alone: python tests/bench/cost_whole_model.py NAME ZOO MODELS; JSON of seconds."""

import json
import os
import sys
from pathlib import Path

os.environ["ORT_DISABLE_TELEMETRY"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

from cost_measurements import Clock, times_of_file
from zoo_graphs import subject

ROUNDS, SECONDS = 5, 0.02
TOLERANCE = 5e-2
"""In parts of the largest value: who differs by more computes something else."""


def main() -> None:
    """Prints the seconds by engine, of those that agree with ONNX Runtime."""
    name, zoo, models = sys.argv[1:]
    one = subject(name, Path(zoo), Path(models))
    found = times_of_file(str(one.path), one.inputs, Clock(), ROUNDS, SECONDS, TOLERANCE)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
