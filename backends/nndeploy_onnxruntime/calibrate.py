# SPDX-License-Identifier: Apache-2.0
"""Ranges of a float model's tensors on samples, as `onnxruntime.quantization` finds them.

The model runs with every float tensor as an output, sample by sample, so that the values of one are kept at a time.
"""

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nndeploy.errors import BuildRefusedError
from nndeploy.values.types import Value
from nndeploy_onnxruntime.library import quantization

_METHODS = {"min-max": "MinMax", "percentile": "Percentile", "entropy": "Entropy"}


def calibrate(
    model: bytes, samples: Sequence[Mapping[str, Value]], method: str, workdir: Path
) -> dict[str, tuple[float, float]]:
    """Returns tensor -> least and largest value by `method`, of `nndeploy.plugin.interface.CALIBRATIONS`.

    Raises:
        BuildRefusedError: the library cannot run the model, or not on these values.
    """
    with contextlib.redirect_stdout(sys.stderr):  # the library prints what it is at
        return _ranges(model, samples, method, workdir)


def _ranges(
    model: bytes, samples: Sequence[Mapping[str, Value]], method: str, workdir: Path
) -> dict[str, tuple[float, float]]:
    (workdir / "float.onnx").write_bytes(model)
    calibrator = quantization("calibrate").create_calibrator(
        workdir / "float.onnx",
        augmented_model_path=str(workdir / "all_outputs.onnx"),
        calibrate_method=getattr(quantization("calibrate").CalibrationMethod, _METHODS[method]),
    )
    for sample in samples:
        calibrator.collect_data(_One(sample))
    ranges = {name: _least_and_largest(found) for name, found in calibrator.compute_data().items()}
    if not ranges:
        raise BuildRefusedError("no float tensor was found to calibrate")
    return ranges


def _least_and_largest(found: Any) -> tuple[float, float]:
    least, most = found.range_value
    return float(np.min(least)), float(np.max(most))  # arrays of no dimension or of one


class _One:
    """One sample, in the form in which the library asks for its data."""

    def __init__(self, sample: Mapping[str, Value]) -> None:
        self._left: Iterator[dict[str, Value]] = iter([dict(sample)])

    def get_next(self) -> dict[str, Value] | None:
        """Returns the sample, and None when it was asked before."""
        return next(self._left, None)
