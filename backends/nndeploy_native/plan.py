# SPDX-License-Identifier: Apache-2.0
"""plan.json beside a plan: the borders and symbols that a caller needs, and the steps for whoever inspects a bundle.

Nothing that is safe or not depends on it: the kernel library checks the plan itself, and the shapes of every call.
Law: `document_from_json(document_to_json(d)) == d`. Everything that is read is checked: it comes from a bundle.
Values are named tuples, as all that a load imports: Python makes their classes in a tenth of a dataclass's time.
"""

import json
from collections.abc import Container, Mapping, Sequence
from typing import Any, NamedTuple

from nndeploy.errors import BundleError
from nndeploy.plugin.interface import OpenOptions
from nndeploy.values.solved_symbol import SolvedSymbol, solved_from_json
from nndeploy.values.types import MapType, SequenceType, TensorType, ValueType

PLAN_FILE, WEIGHTS_FILE, DOCUMENT_FILE = "plan.bin", "weights.bin", "plan.json"
PLAN_FORMAT_OF_FIXED, PLAN_FORMAT_OF_GROWN, PLAN_FORMAT_OF_HALVES, PLAN_FORMAT_OF_MOVED = 5, 6, 7, 8
PLAN_FORMAT_OF_COURSES, PLAN_FORMAT_OF_PYTHON_STEPS, PLAN_FORMAT_OF_DOUBLES, PLAN_FORMAT_OF_FOUND = 9, 10, 11, 12
PLAN_FORMATS_OF_PYTHON_STEPS = (PLAN_FORMAT_OF_PYTHON_STEPS, PLAN_FORMAT_OF_FOUND)
PLAN_FORMATS_OF_COURSES = (PLAN_FORMAT_OF_COURSES, *PLAN_FORMATS_OF_PYTHON_STEPS)
PLAN_FORMATS = (
    PLAN_FORMAT_OF_FIXED, PLAN_FORMAT_OF_GROWN, PLAN_FORMAT_OF_HALVES, PLAN_FORMAT_OF_MOVED, *PLAN_FORMATS_OF_COURSES,
    PLAN_FORMAT_OF_DOUBLES,
)  # fmt: skip
"""The formats of an artifact: readers before do not know outputs that grow, float16, that a plan tells where what is
new was put, several plans, steps of Python beside them, float64 in one plan, or steps that find elements."""
DTYPES = {
    "fp32": "float32", **{name: name for name in ("int32", "int64", "bool", "uint8", "int8")}, "fp16": "float16",
    "fp64": "float64",
}  # fmt: skip
"""The type of each element that a tensor of a plan may have; of float16 are borders, caches and what is put there."""
ELEMENTS = {element: number for number, element in enumerate(DTYPES)}
"""Their numbers in a plan: enum nnd_element."""
TEXT = "string"
_MAP_ELEMENTS = tuple(f"map({key},{value})" for key in (TEXT, "int64") for value in ("fp32", "int64", TEXT))
COURSE_ELEMENTS = frozenset((*DTYPES, TEXT, *_MAP_ELEMENTS, *(f"sequence({one})" for one in _MAP_ELEMENTS)))
"""What values beside plans may be: texts too, and maps and sequences of them, whose rank is 0."""
MAX_SIZE = 2**40
MAX_ADDED = 2**20
"""Places by which an output grows in a call, where the plan says how many."""
MAX_RANK = 8
"""Axes of a tensor: NND_MOST_RANK of the kernel library."""


class PlanBorder(NamedTuple):
    """An input or output: sizes that depend on the inputs are None."""

    name: str
    element: str
    shape: tuple[int | None, ...]


def element_of_type(value_type: ValueType) -> str:
    """Returns the element of a type as borders have it, "" where there is none."""
    match value_type:
        case TensorType(dtype, _):
            return next((element for element, name in DTYPES.items() if name == dtype), TEXT if dtype == TEXT else "")
        case MapType(key, value):
            found = f"map({key},{element_of_type(value)})"
        case SequenceType(inner):
            found = f"sequence({element_of_type(inner)})"
        case _:
            return ""
    return found if found in COURSE_ELEMENTS else ""


class GrownOutput(NamedTuple):
    """Output `output` is input `input` with more places along an axis: `added`, or the symbol of that number.

    Where it `is_total`, the symbol is all places, if the input has no more. Its tensor in the plan has room behind, of
    which the caller says how much: the size of one more input's only axis.
    """

    output: int
    input: int
    axis: int
    added: int
    symbol: int | None
    is_total: bool = False

    def length(self, before: int, told: int) -> int:
        """Returns the places of the output for those of the input and the number that the symbol is, if it has one."""
        if self.is_total:
            return max(before, told)
        return before + (self.added if self.symbol is None else told)


CAPACITY = PlanBorder("(capacity)", "bool", (None,))
"""The input, behind the others, of a plan with outputs that grow: nothing but its size is looked at."""
MOVED = PlanBorder("(moved)", "bool", (None, None))
"""The output, behind the others, of a plan that tells it: whether what is new does not stand right behind the inputs.

Then nothing was written where an output lies in the memory of its input: the call is to be made again, in other memory.
"""


class PlanDocument(NamedTuple):
    """What stands in plan.json. `grown` is empty where no output grows; `tells_moved` where places are data."""

    inputs: tuple[PlanBorder, ...]
    outputs: tuple[PlanBorder, ...]
    symbols: tuple[SolvedSymbol, ...]
    steps: tuple[Mapping[str, int | str], ...]
    grown: tuple[GrownOutput, ...] = ()
    tells_moved: bool = False

    @property
    def plan_outputs(self) -> tuple[PlanBorder, ...]:
        """The outputs of the plan."""
        return (*self.outputs, MOVED) if self.tells_moved else self.outputs

    @property
    def plan_inputs(self) -> tuple[PlanBorder, ...]:
        """The inputs of the plan."""
        return (*self.inputs, CAPACITY) if self.grown else self.inputs


def document_to_json(document: PlanDocument) -> bytes:
    """Returns the bytes of plan.json."""
    return json.dumps(data_of_document(document), indent=1, ensure_ascii=False).encode()


def data_of_document(document: PlanDocument) -> dict[str, Any]:
    """Returns what stands in plan.json."""
    return {
        "inputs": data_of_borders(document.inputs),
        "outputs": data_of_borders(document.outputs),
        "symbols": [one._asdict() for one in document.symbols],
        "steps": [dict(step) for step in document.steps],
        **({"grown": [one._asdict() for one in document.grown]} if document.grown else {}),
        **({"tells_moved": True} if document.tells_moved else {}),
    }


def data_of_borders(borders: Sequence[PlanBorder]) -> list[list[Any]]:
    """Returns inputs or outputs as they stand in plan.json."""
    return [[one.name, one.element, list(one.shape)] for one in borders]


def document_from_json(text: bytes) -> PlanDocument:
    """Returns the document.

    Raises:
        BundleError: it is malformed.
    """
    try:
        return document_from_data(json.loads(text))
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as err:
        raise BundleError(f"a malformed {DOCUMENT_FILE}: {err!s:.200}") from err


def document_from_data(data: Mapping[str, Any]) -> PlanDocument:
    """Returns the document that `data_of_document` describes.

    Raises:
        ValueError, KeyError, TypeError, IndexError: it is malformed.
    """
    inputs, outputs = borders_from_data(data["inputs"]), borders_from_data(data["outputs"])
    if not outputs or any(len({one.name for one in some}) != len(some) for some in (inputs, outputs)):
        raise ValueError("an input or output stands twice, or there is no output")
    grown = tuple(GrownOutput(**one) for one in data.get("grown", ()))
    ranks = [len(one.shape) for one in inputs] + ([1] if grown else [])
    symbols = solved_from_json(data["symbols"], ranks)
    steps = tuple(dict(step) for step in data["steps"])
    document = PlanDocument(inputs, outputs, symbols, steps, grown, data.get("tells_moved", False))
    _check_grown(document)
    return document


def _check_grown(document: PlanDocument) -> None:
    """Passes outputs that grow which name inputs, outputs, axes and symbols that there are, each output and input once.

    Raises:
        ValueError: one does not.
    """
    if type(document.tells_moved) is not bool or (document.tells_moved and not document.grown):
        raise ValueError("what is new is moved where nothing grows")
    for one in document.grown:
        if type(one.is_total) is not bool or (one.is_total and one.symbol is None):
            raise ValueError(f"an output that grows to {one!r:.80}")
        numbers = (one.output, one.input, one.axis, one.added, 0 if one.symbol is None else one.symbol)
        if any(type(number) is not int or not 0 <= number <= MAX_ADDED for number in numbers):
            raise ValueError(f"an output that grows by {one!r:.80}")
        output, past = document.outputs[one.output], document.inputs[one.input]
        if output.element != past.element or len(output.shape) != len(past.shape) or output.shape[one.axis] is not None:
            raise ValueError(f"output {output.name!r:.40} does not grow from {past.name!r:.40}")
        if one.symbol is not None and document.symbols[one.symbol].number >= len(document.inputs):
            raise ValueError("an output that grows by its own room")
    for ends in ([one.output for one in document.grown], [one.input for one in document.grown]):
        if len(set(ends)) != len(ends):
            raise ValueError("what grows stands twice")


def check_borders(inputs: Sequence[PlanBorder], outputs: Sequence[PlanBorder], options: OpenOptions) -> None:
    """Passes inputs and outputs that are what the bundle says of them.

    Raises:
        BundleError: it says something else.
    """
    for side, borders, said in (
        ("input", inputs, options.inputs),
        ("output", outputs, options.outputs),
    ):
        if said is not None:
            _check_borders(side, borders, said)


def _check_borders(side: str, borders: Sequence[PlanBorder], said: Mapping[str, ValueType]) -> None:
    names = {border.name for border in borders}
    if (side == "input" and not names <= set(said)) or (side == "output" and names != set(said)):
        raise BundleError(f"{DOCUMENT_FILE} has other {side}s than the bundle says")
    for border in borders:
        expected = said[border.name]
        if border.element != element_of_type(expected):
            raise BundleError(
                f"{side} {border.name!r:.60}: {DOCUMENT_FILE} says {border.element}, the bundle {expected}"
            )
        if isinstance(expected, TensorType) and expected.shape is not None and not _is_shape(border, expected.shape):
            shape = ",".join("?" if size is None else str(size) for size in border.shape)
            raise BundleError(f"{side} {border.name!r:.60}: {DOCUMENT_FILE} says [{shape}], the bundle {expected}")


def _is_shape(border: PlanBorder, said: Sequence[object]) -> bool:
    """Whether a shape is what the bundle says; a size that is named there may be any here."""
    return len(border.shape) == len(said) and all(
        not isinstance(wanted, int) or size == wanted for size, wanted in zip(border.shape, said, strict=True)
    )


def borders_from_data(data: Sequence[Any], elements: Container[str] = DTYPES) -> tuple[PlanBorder, ...]:
    """Returns inputs or outputs of these elements; raises as `document_from_data`."""
    return tuple(PlanBorder(str(name), _element(element, elements), _shape(shape)) for name, element, shape in data)


def _element(name: Any, elements: Container[str]) -> str:
    if name not in elements:
        raise ValueError(f"not an element: {name!r:.40}")
    return str(name)


def _shape(data: Sequence[Any]) -> tuple[int | None, ...]:
    if len(data) > MAX_RANK:
        raise ValueError(f"a shape of {len(data)} axes")
    for size in data:
        if size is not None and (type(size) is not int or not 0 < size <= MAX_SIZE):
            raise ValueError(f"not a size: {size!r:.40}")
    return tuple(data)
