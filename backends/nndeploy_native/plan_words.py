# SPDX-License-Identifier: Apache-2.0
"""Steps -> the words of a plan, in the order of nndeploy_kernels/plan_words.h, which also makes what the library reads.

A step says in `written()` which operator it is, and what stands for each word of it (`steps/step.py`).
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import nndeploy_kernels
import numpy as np

from nndeploy.errors import BuildRefusedError
from nndeploy.values.size import fixed
from nndeploy_native.plan_writer import PlanWriter, double_bits
from nndeploy_native.steps.step import NativeStep, Unstored, Words
from nndeploy_native.tensors import Array, Tensor

TABLE = Path(nndeploy_kernels.__file__).with_name("plan_words.h")


class Word(NamedTuple):
    """A word, or what stands for several; `rest` is what follows its name: a part, a set, counts, bounds."""

    kind: str
    name: str
    rest: tuple[str, ...]


class Table(NamedTuple):
    """The words of each operator by its name, those of parts, and the names of each set in their order."""

    operators: Mapping[str, str]
    words: Mapping[str, tuple[Word, ...]]
    sets: Mapping[str, tuple[str, ...]]


@cache
def table() -> Table:
    """Returns the table that is written in plan_words.h."""
    text = re.sub(r"/\*.*?\*/", "", TABLE.read_text(encoding="utf-8"), flags=re.DOTALL).replace("\\\n", "")
    bodies = dict[str, dict[str, str]](WORDS={}, CHOICES={}, EVERY_OP={})
    for kind, name, body in re.findall(r"#define NND_(WORDS|CHOICES|EVERY_OP)_?(\w*)\(\w\)(.*)", text):
        bodies[kind][name] = re.sub(r"NND_WORDS_(\w+)\(W\)", lambda other: bodies["WORDS"][other[1]], body)
    words = {
        name: tuple(Word(kind, one, (*rest,)) for kind, one, *rest in _items(body))
        for name, body in bodies["WORDS"].items()
    }
    sets = {name: tuple(said for _, said in _items(body)) for name, body in bodies["CHOICES"].items()}
    operators = {operator: its_words for operator, its_words, *_ in _items(bodies["EVERY_OP"][""])}
    return Table(operators, words, sets)


def _items(body: str) -> list[list[str]]:
    """Returns what stands in the brackets of each word, operator or choice, as [NUMBER, axis, 0, NND_MOST_RANK - 1]."""
    return [re.split(r",\s*", item) for item in re.findall(r"\w\(((?:[^()]|\([^()]*\))*)\)", body)]


def write_step(step: NativeStep, writer: PlanWriter) -> None:
    """Adds a step to a plan.

    Raises:
        BuildRefusedError: a size, a choice or a constant is none that the library takes.
    """
    written = step.written()
    for one in written.numbered_first:
        _operand(one, writer) if isinstance(one, Tensor | np.ndarray) else writer.size(one)
    words = _words(table().operators[written.operator], written.words, writer)
    writer.step(written.operator, written.label, words, **written.notes)


def _words(name: str, values: object, writer: PlanWriter) -> list[int]:
    """Returns the words of an operator or a part: of its values in their order, by name, or of the only one."""
    listed = table().words[name]
    if isinstance(values, tuple):
        values = Words(**{word.name: value for word, value in zip(listed, values, strict=True)})
    elif not isinstance(values, Words):
        values = Words(values)
    return [number for word in listed for number in _written(word, values[word.name], writer)]


def _written(word: Word, value: Any, writer: PlanWriter) -> list[int]:
    """Returns the numbers that a word is."""
    if word.kind == "PART":
        return _words(word.rest[0], value, writer)
    if word.kind in ("LIST", "REST"):
        only = len(table().words[word.rest[0]]) == 1
        items = [_words(word.rest[0], (item,) if only else item, writer) for item in value]
        return [*([len(items)] if word.kind == "LIST" else []), *(number for item in items for number in item)]
    if word.kind == "PAIRS":
        return [len(value), *(number for pair in value for number in pair)]
    if word.kind == "CHOICE":
        names = table().sets[word.rest[0]]
        if value not in names:
            raise BuildRefusedError(f"{word.name} {value!r}, where the kernel library has {', '.join(names)}")
        return [names.index(value)]
    write = _KINDS[word.kind]
    return [write(one, writer) for one in (value if word.kind in ("RULES", "NUMBERS") else (value,))]


def _operand(value: Tensor | Unstored | Array | None, writer: PlanWriter) -> int:
    if isinstance(value, np.ndarray):
        return writer.constant_tensor(value)
    if isinstance(value, Unstored):
        return writer.tensor(value.tensor, is_stored=False)
    return writer.tensor(value)


def _constant(dtype: type | None) -> Callable[[Array | None, PlanWriter], int]:
    """Returns what adds a constant of a type, or of its own."""
    return lambda array, writer: writer.weight(None if array is None else np.ascontiguousarray(array, dtype))


_TENSORS = ("INPUT", "INPUT_ANY", "INPUT_NUMBER", "OPTIONAL", "OPTIONAL_ANY", "OUTPUT", "OUTPUT_ANY", "OUTPUT_NUMBER")
_KINDS: dict[str, Callable[[Any, PlanWriter], int]] = {
    **dict.fromkeys((*_TENSORS, "TENSOR"), _operand),
    "WEIGHT": lambda array, writer: writer.floats(array),
    "FLOATS": _constant(np.float32),
    "VECTOR": lambda array, writer: _KINDS["FLOATS"](None if array is None else array.reshape(-1), writer),
    "INT32S": _constant(np.int32),
    "CONSTANT": _constant(None),
    "WEIGHT_OR_BYTES": lambda array, writer: _KINDS["CONSTANT" if array.dtype == np.int8 else "WEIGHT"](array, writer),
    **dict.fromkeys(("PROGRAM", "PROGRAM_ANY"), lambda one, writer: -1 if one is None else writer.program(one)),
    **dict.fromkeys(("RULE", "RULES"), lambda size, writer: writer.size(size)),
    **dict.fromkeys(("FLAG", "NUMBER", "NUMBERS"), lambda number, _: int(fixed(number))),
    **dict.fromkeys(("FLOAT", "DOUBLE"), lambda number, _: double_bits(number)),
}
