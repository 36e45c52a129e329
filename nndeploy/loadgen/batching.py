# SPDX-License-Identifier: Apache-2.0
"""Joins samples into one call of a program, and takes the outputs apart again.

A bundle may allow it where the inputs share a first axis of no fixed size and the outputs have one too. That does not
prove that rows do not touch each other (an axis of time looks the same), so the first two samples are run alone and
together, and the outputs must agree within the bundle's tolerances.

Law: `JoinedCalls.run(samples)[i]` is what `program.run(samples[i])` gives, up to those tolerances.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from nndeploy.bundle.manifest import Manifest
from nndeploy.compare import compare_values, tolerance_for
from nndeploy.errors import BundleError, NndeployError
from nndeploy.value_types import Dim, DimRange, TensorType, Value, ValueType

Sample = Mapping[str, Value]

ANY_SIZE = DimRange(1, 1 << 31, 1)


class Runs(Protocol):
    """What is needed of a `Program`."""

    manifest: Manifest

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the outputs of one call."""


def batch_sizes(manifest: Manifest) -> DimRange | None:
    """Returns the sizes of the first axis that all inputs share, None where there is no such axis.

    Outputs must have a first axis that is not fixed, whatever it is called: exporters name it anew in each of them.
    """
    firsts = [_first_dim(item.type) for item in manifest.inputs]
    if not firsts or any(dim != firsts[0] for dim in firsts) or isinstance(firsts[0], int):
        return None
    if any(isinstance(_first_dim(item.type), int) for item in manifest.outputs):
        return None
    if firsts[0] is None:  # nothing says that two unknown sizes are the same
        return ANY_SIZE if len(firsts) == 1 else None
    return manifest.ranges.get(firsts[0], ANY_SIZE)


def _first_dim(value_type: ValueType) -> Dim:
    """Returns the first size of a tensor; 0, which is no batch, where there is none."""
    return value_type.shape[0] if isinstance(value_type, TensorType) and value_type.shape else 0


class JoinedCalls:
    """Calls a program with several samples at once, at most `most_rows` rows of the batch axis."""

    def __init__(self, program: Runs, most_rows: int) -> None:
        """Takes a program; where its bundle has no batch axis, `most_rows` is 1 whatever was asked for."""
        self._program = program
        sizes = batch_sizes(program.manifest)
        self.most_rows = 1 if sizes is None else max(1, min(most_rows, sizes.max))

    def check(self, samples: Sequence[Sample]) -> str:
        """Returns "" where joining is right, else why it is not; from then on samples are run one by one."""
        if self.most_rows == 1:
            return ""
        pair = (samples[0], samples[1] if len(samples) > 1 else samples[0])
        if self.num_joined(pair) < 2:
            return ""
        reason = self._difference(pair)
        if reason:
            self.most_rows = 1
        return reason

    def num_joined(self, samples: Sequence[Sample]) -> int:
        """Returns how many of the first samples one call can take, at least one where there is one."""
        if self.most_rows == 1:
            return min(1, len(samples))
        rows, shapes = 0, None
        for i, sample in enumerate(samples):
            rows += _rows(sample)
            if (i and rows > self.most_rows) or (shapes is not None and _row_shapes(sample) != shapes):
                return i
            shapes = _row_shapes(sample)
        return len(samples)

    def run(self, samples: Sequence[Sample]) -> list[dict[str, Value]]:
        """Returns the outputs of each sample, from one call.

        Raises:
            BundleError: an output does not have the rows of the inputs.
            NndeployError: as `Program.run`.
        """
        if len(samples) == 1:
            return [self._program.run(samples[0])]
        names = samples[0].keys()
        outputs = self._program.run({name: np.concatenate([s[name] for s in samples]) for name in names})
        ends = np.cumsum([_rows(sample) for sample in samples])
        for name, value in outputs.items():
            if value.shape[:1] != (ends[-1],):
                raise BundleError(f"output {name!r} has shape {value.shape} for {ends[-1]} rows of input")
        return [
            {name: value[end - _rows(sample) : end] for name, value in outputs.items()}
            for sample, end in zip(samples, ends, strict=True)
        ]

    def _difference(self, pair: Sequence[Sample]) -> str:
        try:
            together = self.run(pair)
        except NndeployError as err:
            return str(err)
        for got, want in zip(together, [self._program.run(sample) for sample in pair], strict=True):
            for item in self._program.manifest.outputs:
                tolerance = tolerance_for(item.type, self._program.manifest.tolerances)
                if not compare_values(got[item.name], want[item.name], tolerance).ok:
                    return f"output {item.name!r} of a sample differs when another one is in the same call"
        return ""


def _rows(sample: Sample) -> int:
    """Returns the size of the first axis, 1 where that has no meaning."""
    first = next(iter(sample.values()), None)
    return first.shape[0] if isinstance(first, np.ndarray) and first.ndim else 1


def _row_shapes(sample: Sample) -> dict[str, object]:
    """Returns all that must be the same in samples of one call; what is no array equals nothing."""
    return {
        name: (value.dtype, value.shape[1:]) if isinstance(value, np.ndarray) and value.ndim else object()
        for name, value in sample.items()
    }
