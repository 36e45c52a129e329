# SPDX-License-Identifier: Apache-2.0
"""The words of a plan as they grow: sizes, weights, values, tensors, programs and texts, equal ones once.

The layout is that of nndeploy_kernels/c/model/plan.h. Law: the same steps give the same bytes.
"""

import hashlib
import io
import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

import numpy as np

from nndeploy.backend_kit.kernels.memory import aligned
from nndeploy.errors import BuildRefusedError
from nndeploy.files.file_content import MIN_MAPPED_BYTES, mapped_content
from nndeploy.values.size import Atom, Dim, Extreme, Quotient, Symbol
from nndeploy_native.expression_program import Program
from nndeploy_native.plan import DTYPES, ELEMENTS
from nndeploy_native.tensors import Array, Tensor

MAGIC = 0x4E414C50444E4E
VERSION = 4
ALIGNMENT = 64
LEAST_HALVES = 256
"""Elements of a constant from which on it is worth keeping as float16."""
_DTYPES = {dtype: ELEMENTS[element] for element, dtype in DTYPES.items()}
_CONSTANT, _SYMBOL, _ADD, _MULTIPLY, _DIVIDE, _MIN, _MAX = range(7)
_ARENA, _INPUT, _OUTPUT, _WEIGHT = range(4)


@dataclass(slots=True)
class WeightBytes:
    """The bytes of weights.bin as they grow in a file, or in memory; several plans may share them."""

    file: IO[bytes] = field(default_factory=io.BytesIO)
    _offsets: dict[bytes, int] = field(default_factory=dict)
    _end: int = 0

    def __len__(self) -> int:
        return self._end

    def content(self) -> bytes | memoryview:
        """Returns the bytes; many that are in a file are mapped."""
        if self._end < MIN_MAPPED_BYTES or isinstance(self.file, io.BytesIO):
            self.file.seek(0)
            return self.file.read()
        descriptor = self.file.fileno()  # of one that was in memory until now too
        self.file.flush()
        return mapped_content(descriptor)

    def offset(self, array: Array) -> int:
        """Takes the bytes of an array in, equal ones once; returns where they are."""
        raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        key = hashlib.sha256(raw).digest()
        if key not in self._offsets:
            self._offsets[key] = self._end
            self.file.seek(self._end)
            self.file.write(raw)
            self.file.write(bytes(aligned(len(raw), ALIGNMENT) - len(raw)))
            self._end += aligned(len(raw), ALIGNMENT)
        return self._offsets[key]


@dataclass(slots=True)
class PlanWriter:
    """`solved` names the symbols in order; `inputs` and `outputs` are the roots of the borders.

    `keeps_halves`: the model has constants of float16, and floats that are some of these stay so.
    """

    solved: Mapping[Atom, object]
    inputs: Sequence[str]
    outputs: Sequence[str]
    constants: Mapping[str, Array]
    keeps_halves: bool = False
    weights: WeightBytes = field(default_factory=WeightBytes)
    _rules: dict[tuple[int, int, int], int] = field(default_factory=dict)
    _arrays: dict[tuple[str, tuple[int, ...], int], int] = field(default_factory=dict)
    _values: dict[str, int] = field(default_factory=dict)
    _value_words: list[int] = field(default_factory=list)
    _tensors: dict[tuple[int, ...], int] = field(default_factory=dict)
    _programs: dict[Program, int] = field(default_factory=dict)
    _texts: dict[str, int] = field(default_factory=dict)
    _steps: list[int] = field(default_factory=list)
    shown: list[dict[str, str]] = field(default_factory=list)
    """What people are shown of each step."""

    @property
    def has_halves(self) -> bool:
        """Whether a constant is float16."""
        return any(dtype == "float16" for dtype, _, _ in self._arrays)

    @property
    def has_doubles(self) -> bool:
        """Whether something is float64: a tensor, a constant or the numbers of a program."""
        elements = {words[1] for words in self._tensors} | {_DTYPES[dtype] for dtype, _, _ in self._arrays}
        return ELEMENTS["fp64"] in elements or any(one.is_of_doubles for one in self._programs)

    def size(self, size: Dim) -> int:
        """Returns the number of the rule that gives a size.

        Raises:
            BuildRefusedError: the shapes of the inputs do not give it.
        """
        if isinstance(size, int):
            return self._rule(_CONSTANT, size, 0)
        result = -1
        for atoms, count in size.terms:
            term = self.size(count) if count != 1 or not atoms else -1
            for atom in atoms:
                one = self._atom(atom)
                term = one if term < 0 else self._rule(_MULTIPLY, term, one)
            result = term if result < 0 else self._rule(_ADD, result, term)
        return result

    def weight(self, array: Array | None) -> int:
        """Returns the number of a constant, -1 of none."""
        if array is None:
            return -1
        return self._arrays.setdefault((array.dtype.name, array.shape, self.weights.offset(array)), len(self._arrays))

    def floats(self, array: Array | None) -> int:
        """Returns the number of constant floats, which are kept as float16 where that is what the model has."""
        if array is None:
            return -1
        if not self.keeps_halves or array.size < LEAST_HALVES:
            return self.weight(np.ascontiguousarray(array, np.float32))
        with np.errstate(over="ignore"):
            halves = array.astype(np.float16)
        is_same = np.array_equal(halves.astype(np.float32), array, equal_nan=True)
        return self.weight(halves if is_same else np.ascontiguousarray(array, np.float32))

    def tensor(self, tensor: Tensor | None, *, is_stored: bool = True) -> int:
        """Returns the number of a tensor, -1 of none; one that is not stored has no memory."""
        if tensor is None:
            return -1
        sizes = [self.size(size) for size in tensor.shape]
        value = self._value(tensor.name) if is_stored else -1
        words = (value, ELEMENTS[tensor.element], int(tensor.is_blocked), len(sizes), *sizes)
        return self._tensors.setdefault(words, len(self._tensors))

    def constant_tensor(self, array: Array) -> int:
        """Returns the number of a tensor that is a constant."""
        number = self.weight(array)
        name = f"$constant.{number}"
        if name not in self._values:
            self._values[name] = len(self._values)
            self._value_words += [_WEIGHT, number]
        sizes = [self.size(int(size)) for size in array.shape]
        words = (self._values[name], _DTYPES[array.dtype.name], 0, array.ndim, *sizes)
        return self._tensors.setdefault(words, len(self._tensors))

    def program(self, program: Program) -> int:
        """Returns the number of a program."""
        return self._programs.setdefault(program, len(self._programs))

    def step(self, operator: str, label: str, words: Sequence[int], **notes: str) -> None:
        """Adds a step; people are shown its operator, its label and the notes."""
        self.shown.append({"kernel": operator, "what": label, **notes})
        self._steps += [self._text(operator), self._text(label), len(words), *words]

    def finished(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> bytes:
        """Returns the bytes of the plan."""
        borders = [[len(some), *(self.tensor(one) for one in some)] for some in (inputs, outputs)]
        words = [len(self.solved), *_counted(self._rules)]
        words += [len(self._arrays)]
        for dtype, shape, offset in self._arrays:
            words += [_DTYPES[dtype], offset, len(shape), *shape]
        words += [len(self._values), *self._value_words, *_counted(self._tensors), *borders[0], *borders[1]]
        words += [len(self._programs)]
        for program in self._programs:
            words += program.words
        words += [len(self._texts)]
        for text in self._texts:
            raw = text.encode()
            words += [len(raw), *struct.unpack(f"<{-(-len(raw) // 8)}q", raw.ljust(aligned(len(raw), 8), b"\0"))]
        words += [len(self.shown), *self._steps]
        whole = [MAGIC, VERSION, len(words) + 3, *words]
        return struct.pack(f"<{len(whole)}q", *whole)

    def _rule(self, kind: int, first: int, second: int) -> int:
        return self._rules.setdefault((kind, first, second), len(self._rules))

    def _atom(self, atom: Atom) -> int:
        if atom in self.solved:
            return self._rule(_SYMBOL, list(self.solved).index(atom), 0)
        match atom:
            case Quotient():
                return self._rule(_DIVIDE, self.size(atom.dividend), self.size(atom.divisor))
            case Extreme():
                kind = _MIN if atom.kind == "min" else _MAX
                return self._rule(kind, self.size(atom.first), self.size(atom.second))
            case Symbol():
                raise BuildRefusedError(f"the size {atom.name!r} cannot be told from the shapes of the inputs here")

    def _value(self, root: str) -> int:
        if root not in self._values:
            self._values[root] = len(self._values)
            if root in self.inputs:
                self._value_words += [_INPUT, self.inputs.index(root)]
            elif root in self.outputs:
                self._value_words += [_OUTPUT, self.outputs.index(root)]
            elif root in self.constants:
                self._value_words += [_WEIGHT, self.weight(self.constants[root])]
            else:
                self._value_words += [_ARENA, 0]
        return self._values[root]

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text[:1000], len(self._texts))


def double_bits(number: float) -> int:
    """Returns the word that holds a double."""
    word: int = struct.unpack("<q", struct.pack("<d", number))[0]
    return word


def _counted(rows: Collection[tuple[int, ...]]) -> list[int]:
    return [len(rows), *(word for row in rows for word in row)]
