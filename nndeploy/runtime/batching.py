# SPDX-License-Identifier: Apache-2.0
"""Joins samples into one call of a program, and takes the outputs apart again.

A bundle may allow it where the first axis of all inputs has one size and no output's contradicts it. That does not
prove that rows do not touch each other (an axis of time looks the same), so samples are run together and alone once,
and the outputs must agree as `verify` has it: within tolerances, or the limits of engines that are right. Where the
model takes no batch of so many rows as the samples have, copies of the last row fill it up to one that it takes;
"alone" then means: with copies of itself.

Law: once `prove` has passed, `run(samples)[i]` is what `run([samples[i]])[0]` gives, up to those tolerances.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Protocol, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from nndeploy.bundle.manifest import Limits, Manifest, NamedType
from nndeploy.comparison.compare import compare_values
from nndeploy.comparison.judge import judge
from nndeploy.errors import NndeployError, UsageError
from nndeploy.values.types import Dim, DimRange, TensorType, Value

Sample: TypeAlias = Mapping[str, Value]

ANY_SIZE = DimRange(1, 1 << 31, 1)
ONE_ROW = DimRange(1, 1, 1)
NO_BATCHES = "this model takes no batches"


class Runs(Protocol):
    """What is needed of a `Program`."""

    @property
    def manifest(self) -> Manifest:
        """What the bundle says of itself."""

    @property
    def rows_at_once(self) -> int:
        """The most rows of the first axis that the chain which runs was built for."""

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the outputs of one call."""


def batch_sizes(manifest: Manifest) -> DimRange | str:
    """Returns how many rows of the first axis a call takes, or why the model takes no batches.

    An output may call its first axis otherwise than the inputs do, as exporters do; the rows of each call are counted.
    """
    for item in (*manifest.inputs, *manifest.outputs):
        if not isinstance(item.type, TensorType) or item.type.shape == ():
            return f"{item.name!r} ({item.type}) has no batch axis: {NO_BATCHES}"
    sizes = {_first_size(item) for item in manifest.inputs}
    if len(sizes) != 1:
        return f"the inputs differ in their first size: {NO_BATCHES}"
    size = sizes.pop()
    for item in manifest.outputs:
        out = _first_size(item)
        if out not in (None, size) and (isinstance(out, int) or isinstance(size, int)):
            return f"the output {item.name!r} ({item.type}) has no batch axis: {NO_BATCHES}"
    if isinstance(size, int):
        return DimRange(size, size, size)
    return ANY_SIZE if size is None else manifest.ranges.get(size, ANY_SIZE)


def _first_size(item: NamedType) -> Dim:
    assert isinstance(item.type, TensorType)
    return item.type.shape[0] if item.type.shape else None


@dataclass(slots=True)
class Proof:
    """Whether samples in one call were seen to leave each other alone, or not to.

    All that run the same model share one.
    """

    is_done: bool = False
    is_refuted: bool = False


_PROOFS: WeakKeyDictionary[Runs, Proof] = WeakKeyDictionary()


def proof_of(program: Runs) -> Proof:
    """Returns the proof of a program, which holds as long as that is open, for all streams through it."""
    return _PROOFS.setdefault(program, Proof())


class JoinedCalls:
    """Calls a program with several samples at once, at most `most_rows` rows of the batch axis.

    There are no more of them than the program's chain was built for.

    `refusal` says why the model takes no batches, "" where it does; `most_rows` then is 1.
    """

    def __init__(self, program: Runs, most_rows: int = ANY_SIZE.max, proof: Proof | None = None) -> None:
        """Takes a program; what the bundle allows goes before `most_rows`."""
        self.manifest = program.manifest
        sizes = batch_sizes(program.manifest)
        self.refusal = sizes if isinstance(sizes, str) else ""
        self._sizes = ONE_ROW if isinstance(sizes, str) else sizes
        self.most_rows = max(1, min(most_rows, self._sizes.max, program.rows_at_once))
        self._program = program
        self._proof = proof or Proof()

    def num_joined(self, samples: Sequence[Sample]) -> int:
        """Returns how many of the first samples one call can take, at least one where there is one."""
        if self.most_rows == 1 or not samples:
            return min(1, len(samples))
        form, rows = form_of(samples[0]), 0
        for i, sample in enumerate(samples):
            if i and (form is None or form_of(sample) != form):
                return i
            rows += _num_rows(sample) if form is not None else 0
            if i and rows > self.most_rows:
                return i
        return len(samples)

    def run(self, samples: Sequence[Sample]) -> list[dict[str, Value]]:
        """Returns the outputs of each sample, from one call.

        Raises:
            UsageError: an output does not have the rows of the inputs.
            NndeployError: as `Program.run`.
        """
        if len(samples) == 1 and not self._is_filled_up(samples[0]):
            return [self._program.run(samples[0])]
        counts = [_num_rows(sample) for sample in samples]
        fill = self._num_missing(sum(counts))
        outputs = self.run_joined(
            {name: _joined([s[name] for s in samples], fill) for name in samples[0]}, sum(counts) + fill
        )
        return [
            {name: value[end - count : end] for name, value in outputs.items()}
            for count, end in zip(counts, accumulate(counts), strict=True)
        ]

    def run_joined(self, inputs: Sample, rows: int) -> dict[str, Value]:
        """Returns the outputs of samples that were joined, which have so many rows together.

        Raises:
            UsageError: an output does not have these rows.
            NndeployError: as `Program.run`.
        """
        outputs = self._program.run(inputs)
        _check_rows(outputs, rows)
        return outputs

    def prove(
        self, samples: Sequence[Sample], together: Sequence[Mapping[str, Value]], proof: Proof | None = None
    ) -> None:
        """Compares the outputs of one call with those that two of its samples get alone; nothing once that was seen.

        `proof` keeps that it was seen, the own one where none is given.

        They are the first sample and the first that is not equal to it: equal ones may touch each other unseen, so
        where all are equal, this call was right and the next one is compared again.

        Raises:
            UsageError: an output of a sample depends on the others.
            NndeployError: as `Program.run`.
        """
        proof = proof or self._proof
        if proof.is_done or len(samples) < 2:
            return
        other = next((i for i, sample in enumerate(samples) if not _is_equal(sample, samples[0])), 0)
        for i in {0, other}:
            (alone,) = self.run([samples[i]])
            self._compare(together[i], alone)
        proof.is_done = other > 0

    def check(self, samples: Sequence[Sample]) -> str:
        """Returns "" where joining is right, else why it is not; from then on samples are run one by one."""
        pair = self._pair(samples)
        if self.num_joined(pair) < 2:
            return self.refusal
        try:
            self.prove(pair, self.run(pair))
        except NndeployError as err:
            self.most_rows = 1
            return err.what
        return ""

    def _pair(self, samples: Sequence[Sample]) -> tuple[Sample, Sample]:
        """Returns two samples that can be joined and differ, the first one twice where there are no such."""
        firsts: dict[object, Sample] = {}
        for sample in samples:
            first = firsts.setdefault(form_of(sample), sample)
            if first is not sample and self.num_joined((first, sample)) == 2 and not _is_equal(first, sample):
                return first, sample
        return samples[0], samples[0]

    def _is_filled_up(self, sample: Sample) -> bool:
        takes_any = self._sizes.min <= 1 and self._sizes.step == 1
        return not takes_any and form_of(sample) is not None and self._num_missing(_num_rows(sample)) > 0

    def _num_missing(self, rows: int) -> int:
        """Returns how many rows more make a size that the model takes."""
        return max(0, self._sizes.at_least(rows) - rows)

    def _compare(self, got: Mapping[str, Value], want: Mapping[str, Value]) -> None:
        types = {item.name: item.type for item in self.manifest.outputs}
        found = judge(got, want, types, self.manifest.tolerances, lambda: _widest_limits(self.manifest))
        for name, one in found.items():
            if not one.ok:
                how = one.note if one.max_abs is None else f"by up to {one.max_abs:.3g}"
                what = f"the model's output {name!r} of one record depends on the others in its batch: {how}"
                raise UsageError(what, hint="leave out batch")


def form_of(sample: Sample) -> object | None:
    """Returns what must agree between samples that are joined, or None where a sample cannot be."""
    rows: set[int] = set()
    form = []
    for name, value in sample.items():
        if not isinstance(value, np.ndarray) or value.ndim == 0 or not len(value):
            return None
        rows.add(len(value))
        form.append((name, value.dtype, value.shape[1:]))
    return tuple(form) if len(rows) == 1 else None


def _widest_limits(manifest: Manifest) -> dict[str, Limits]:
    """Returns for each output on which engines that are right differ those of the input on which they do most."""
    every = [item for golden in manifest.goldens for item in golden.limits.items()]
    return dict(sorted(every, key=lambda item: item[1].max_abs))


def _num_rows(sample: Sample) -> int:
    """Returns the rows of a sample that has a form."""
    return len(next(iter(sample.values())))


def _is_equal(sample: Sample, other: Sample) -> bool:
    return sample is other or all(compare_values(value, other[name]).ok for name, value in sample.items())


def _joined(arrays: Sequence[np.ndarray[Any, Any]], fill: int) -> np.ndarray[Any, Any]:
    """Returns the arrays joined along the first axis, with `fill` copies of the last row behind them."""
    return np.concatenate([*arrays, np.repeat(arrays[-1][-1:], fill, axis=0)] if fill else arrays)


def _check_rows(outputs: Mapping[str, Value], rows: int) -> None:
    for name, value in outputs.items():
        if not isinstance(value, np.ndarray) or value.ndim == 0 or len(value) != rows:
            got = getattr(value, "shape", type(value).__name__)
            raise UsageError(f"the output {name!r} of a batch of {rows} is {got}: {NO_BATCHES}", hint="leave out batch")
