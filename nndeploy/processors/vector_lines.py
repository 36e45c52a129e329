# SPDX-License-Identifier: Apache-2.0
"""A parameter that is texts with their vectors: the file that a pipeline of an embedder wrote.

Each line is a JSON object with a text and its embedding, or has such an object as its outputs, as `run` writes them.
Such files may have been written by anybody.

Law: all vectors have length 1 and as many numbers as the first.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from nndeploy.errors import DataError
from nndeploy.processors.parameters import ReadFile

MAX_NUMBERS = 1 << 28
TEXT, VECTOR = "text", "embedding"


@dataclass(frozen=True, slots=True, eq=False)
class VectorLines:
    """Texts, and float32 (N, D) vectors of length 1."""

    written_as: ClassVar[str] = "the name of a file with a text and its embedding a line"

    texts: tuple[str, ...]
    vectors: npt.NDArray[np.float32]

    @classmethod
    def from_parameter(cls, value: object, read_file: ReadFile) -> Self:
        """Returns what the file of that name holds.

        Raises:
            DataError: it is no name, or the file is of another kind.
        """
        if not isinstance(value, str):
            raise DataError(f"must be {cls.written_as}, is {value!r:.60}")
        texts, vectors, sizes = list[str](), list[npt.NDArray[np.float32]](), set[int]()
        for number, (text, vector) in _lines(read_file(value), value):
            texts.append(text)
            vectors.append(vector)
            sizes.add(len(vector))
            if len(sizes) > 1 or len(texts) * len(vector) > MAX_NUMBERS:
                what = f"not {len(vectors[0])} numbers" if len(sizes) > 1 else f"with others more than {MAX_NUMBERS}"
                raise DataError(f"line {number} has {len(vector)} numbers, {what}", where=value)
        if not texts:
            raise DataError("is empty", where=value)
        return cls(tuple(texts), np.stack(vectors))


def _lines(data: bytes, where: str) -> Iterator[tuple[int, tuple[str, npt.NDArray[np.float32]]]]:
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip():
            try:
                yield number, _of_line(json.loads(line))
            except (ValueError, RecursionError) as err:
                told = f"line {number} is no object with a {TEXT!r} and an {VECTOR!r} of numbers"
                hint = f'fields = ["{TEXT}", "{VECTOR}"] in the sink of the pipeline that writes it'
                raise DataError(told, where=where, hint=hint) from err


def _of_line(data: Any) -> tuple[str, npt.NDArray[np.float32]]:
    """Returns text and vector.

    Raises:
        ValueError: it has none.
    """
    found = data.get("outputs", data) if isinstance(data, dict) else None
    text, numbers = (found.get(TEXT), found.get(VECTOR)) if isinstance(found, dict) else (None, None)
    if (
        not isinstance(text, str)
        or not isinstance(numbers, list)
        or not all(type(one) in (int, float) for one in numbers)
    ):
        raise ValueError
    return text, unit_vector(np.array(numbers, np.float64))


def unit_vector(vector: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.float32]:
    """Returns a vector of the same direction and length 1.

    Raises:
        ValueError: it has no direction.
    """
    wide = vector.astype(np.float64)
    length = float(np.linalg.norm(wide))
    if not 0 < length < np.inf:
        raise ValueError(f"has the length {length}")
    return (wide / length).astype(np.float32)
