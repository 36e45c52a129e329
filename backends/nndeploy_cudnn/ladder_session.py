# SPDX-License-Identifier: Apache-2.0
"""Sessions for a few sizes of a batch -> one for every size between them.

    5 rows of 1, 2, 4, 8  ->  the first 3 rows again behind them  ->  the session for 8  ->  5 rows of each output

Law: nothing waits for the GPU; what the caller gives is not changed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nndeploy.cuda import Device, DeviceArray
from nndeploy.errors import BundleError, DataError
from nndeploy.plugin.interface import Session
from nndeploy.values.types import Value
from nndeploy_cudnn.program import Program, Tensor


class LadderSession:
    """Runs each call on the session for the least number of rows that is enough; `device` is "cuda:<number>"."""

    def __init__(self, sessions: Mapping[int, Session], programs: Mapping[int, Program], gpu: Device) -> None:
        """Takes the sessions over, by their rows, the fewest first.

        Raises:
            BundleError: their programs differ in more than the first size of inputs and outputs.
        """
        self.device = gpu.name
        self._gpu = gpu
        self._sessions = dict(sessions)
        self._inputs = _batched({rows: program.inputs for rows, program in programs.items()})
        self._outputs = _batched({rows: program.outputs for rows, program in programs.items()})
        if not self._inputs:
            raise BundleError("no input of the plans has the batch")

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the value of every output by name, on the device.

        An input is an array of the host or of this device.

        Raises:
            DataError: there are no plans for so many rows.
        """
        rows: int = inputs[self._inputs[0]].shape[0]
        enough = next((size for size in self._sessions if size >= rows), 0)
        if not rows <= enough <= 2 * rows:
            raise DataError(f"a batch of {rows}; there are plans for {', '.join(map(str, self._sessions))}")
        if rows == enough:
            return self._sessions[rows].run(inputs)
        filled = {name: self._filled_up(inputs[name], enough) for name in self._inputs}
        made = self._sessions[enough].run({**inputs, **filled})
        return {name: value.rows(0, rows) if name in self._outputs else value for name, value in made.items()}

    def close(self) -> None:
        """Frees what the sessions hold; a second call does nothing."""
        for session in self._sessions.values():
            session.close()

    def _filled_up(self, value: "np.ndarray[Any, Any] | DeviceArray", rows: int) -> DeviceArray:
        """Returns an array of so many rows: those that are given, then the first of them again."""
        given = self._gpu.array_of(value)
        filled = self._gpu.empty((rows, *given.shape[1:]), given.dtype.name)
        filled.rows(0, given.shape[0]).write(given)
        filled.rows(given.shape[0], rows).write(given.rows(0, rows - given.shape[0]))
        return filled


def _batched(tensors: Mapping[int, Sequence[Tensor]]) -> list[str]:
    """Returns the names of those that have the rows of their program as first size; others are the same in all.

    Raises:
        BundleError: it is otherwise.
    """
    found = list[str]()
    for group in zip(*([(rows, one) for one in of] for rows, of in tensors.items()), strict=True):
        if all(one.shape[:1] == (rows,) for rows, one in group):
            found.append(group[0][1].name)
            same = {(one.name, one.dtype, one.shape[1:]) for _, one in group}
        else:
            same = {(one.name, one.dtype, one.shape) for _, one in group}
        if len(same) != 1:
            raise BundleError(f"the plans for {', '.join(map(str, tensors))} rows differ in {group[0][1].name!r:.80}")
    return found
