# SPDX-License-Identifier: Apache-2.0
"""Programs that need no bundle, for the tests of LoadGen's half."""

import threading
from collections.abc import Callable, Mapping

import numpy as np

from nndeploy.bundle.manifest import Manifest, NamedType, Tolerance
from nndeploy.loadgen.samples import NamedSample
from nndeploy.values.types import Dim, DimRange, TensorType, Value


def manifest(
    first: tuple[Dim, ...] = ("N", 3), last: tuple[Dim, ...] = ("N", 3), ranges: Mapping[str, DimRange] | None = None
) -> Manifest:
    x, y = TensorType("float32", first), TensorType("float32", last)
    return Manifest(
        "m", "0" * 64, (NamedType("x", x),), (NamedType("y", y),), (), {"x": x, "y": y}, ranges=ranges or {},
        tolerances={"float32": Tolerance(1e-5, 1e-6)},
    )  # fmt: skip


class FakeProgram:
    """y = function(x); keeps the number of rows of every call."""

    rows_at_once = 1 << 31

    def __init__(self, function: Callable[[Value], Value] = lambda x: 2 * x, **sizes: object) -> None:
        self.manifest = manifest(**sizes)
        self.rows: list[int] = []
        self._function = function
        self._lock = threading.Lock()

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        with self._lock:
            self.rows.append(len(inputs["x"]))
        return {"y": self._function(inputs["x"])}


def samples(count: int, rows: int = 1) -> list[NamedSample]:
    dice = np.random.default_rng(0)
    return [NamedSample(f"x.jsonl, line {i}", {"x": dice.random((rows, 3), dtype=np.float32)}) for i in range(count)]
