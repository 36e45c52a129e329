# SPDX-License-Identifier: Apache-2.0
"""byte-window: the bytes of a file -> the tokens of its beginning and end, as Magika wants them.

Source: Magika's feature extraction v2 (github.com/google/magika, python/src/magika/magika.py).
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt

from nndeploy.errors import InputError
from nndeploy.processors.known_shapes import Known
from nndeploy.processors.parameters import Range

Bytes = Annotated[int, Range(0, 1 << 24)]


@dataclass(frozen=True)
class ByteWindow:
    """Gives the first `begin` and the last `end` bytes as numbers, each of a `block` at its end, white space stripped.

    The block at the beginning is stripped on its left and filled up on its right with `padding`, the one at the end
    the other way round.
    """

    name: ClassVar[str] = "byte-window"
    takes: ClassVar[tuple[str, ...]] = ("data",)
    gives: ClassVar[tuple[str, ...]] = ("tokens",)

    begin: Bytes = 1024
    end: Bytes = 1024
    block: Bytes = 4096
    padding: Annotated[int, Range(-(1 << 31), (1 << 31) - 1)] = 256
    strip: bool = True

    def __call__(self, data: bytes) -> npt.NDArray[np.int32]:
        """Returns int32 (1, begin + end)."""
        if not isinstance(data, bytes):
            raise InputError(f"data must be bytes, this is a {type(data).__name__}")
        first, last = data[: self.block], data[max(len(data) - self.block, 0) :]
        if self.strip:
            first, last = first.lstrip(), last.rstrip()
        first, last = first[: self.begin], last[max(len(last) - self.end, 0) :]
        tokens = np.full(self.begin + self.end, self.padding, np.int32)
        tokens[: len(first)] = np.frombuffer(first, np.uint8)
        tokens[len(tokens) - len(last) :] = np.frombuffer(last, np.uint8)
        return tokens[np.newaxis]

    def given_shapes(self, data: Known) -> tuple[Known]:
        """Returns what is known of the tokens."""
        del data
        return ((1, self.begin + self.end),)
