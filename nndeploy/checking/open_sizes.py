# SPDX-License-Identifier: Apache-2.0
"""The open sizes of a model's inputs: what each probably is, and all that must hold of them for the model to run.

ids [B, S], mask [B, P + S], past [B, 4, P, 8]      ->  B: a batch, S: a length, P: a past; the mask has P + S
"""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import onnx_ir as ir

from nndeploy.checking.input_meanings import counting_inputs, index_limits, parameter_inputs
from nndeploy.checking.likely_sizes import (
    BATCH,
    IMAGE,
    LENGTH,
    PAST,
    computed_size,
    is_past,
    kind_of,
    likely_rank,
    usual_sizes,
)
from nndeploy.checking.relations import EQUAL
from nndeploy.checking.size_conditions import Condition, size_conditions, spatial_symbols
from nndeploy.checking.text_meanings import Texts, text_inputs
from nndeploy.graph.infer_sizes import known_sizes
from nndeploy.graph.known_sizes import KnownSizes, Shape
from nndeploy.values.size import MAX_SIZE, Dim, Size, Symbol, UndecidedError, evaluated, replaced, symbol
from nndeploy.values.types import DimRange

Sizes = Mapping[str, int]
"""Symbol -> size."""
_ANY = DimRange(1, MAX_SIZE, 1)
_PROBES = (97, 360)


@dataclass(frozen=True, slots=True)
class OpenSizes:
    """The open sizes of a model's inputs: what each is (`kinds`), what must hold of them, the shapes they stand in.

    `limits` are numbers that the elements of inputs of integers must be below; the elements of some inputs are sizes
    themselves, `counts`, and those of others axes or steps, `parameters` (`input_meanings`). `values` has the shapes of
    other values, where they are known; `texts` what is looked up of inputs of texts.
    """

    kinds: Mapping[str, str]
    conditions: tuple[Condition, ...]
    shapes: Mapping[str, Shape]
    limits: Mapping[str, tuple[Dim, ...]]
    counts: Mapping[str, Shape]
    values: Mapping[str, Shape]
    parameters: Mapping[str, str]
    texts: Mapping[str, Texts] = field(default_factory=dict)

    def shapes_of_values(self, sizes: Sizes) -> dict[str, tuple[int, ...]]:
        """Returns the shapes of all values that are known; sizes that are not given are usual ones."""
        all_sizes = {symbol: sizes.get(symbol, usual_sizes(kind)[0]) for symbol, kind in self.kinds.items()}
        found = {}
        for name, shape in (*self.shapes.items(), *self.values.items()):
            with suppress(KeyError, ZeroDivisionError):  # it depends on the data
                found[name] = tuple(max(0, evaluated(size, all_sizes)) for size in shape)
        return found

    def shape(self, name: str, sizes: Sizes) -> tuple[int, ...]:
        """Returns the shape of an input."""
        return tuple(max(0, evaluated(size, sizes)) for size in self.shapes[name])

    def limit(self, name: str, sizes: Sizes) -> int | None:
        """Returns the number that all elements of an input must be below, None where there is none."""
        return min((max(1, evaluated(rows, sizes)) for rows in self.limits.get(name, ())), default=None)

    def breaks(self, sizes: Sizes) -> bool:
        """Returns whether the model cannot run at these sizes, as far as is known."""
        return any(one.is_firm and one.excess(sizes) for one in self.conditions)

    def size_of_kind(self, kind: str, sizes: Sizes) -> int:
        """Returns the size of the first symbol of a kind, a usual one where there is none."""
        return next((sizes[one] for one, what in self.kinds.items() if what == kind), usual_sizes(kind)[0])


def open_sizes(model: ir.Model) -> OpenSizes:
    """Returns what is known of the open sizes of a model's inputs."""
    model = _with_ranks(model)
    named = {
        dim.value: _ANY
        for value in model.graph.inputs
        for dim in value.shape or ()
        if isinstance(dim, ir.SymbolicDim) and dim.value
    }
    counting = counting_inputs(model.graph)
    counts = {value: _elements_of(value) for value in counting}
    known = known_sizes(model, named, counts)
    computed = {name: size for name in named if (size := computed_size(name, named, known.size_of)) is not None}

    def plain(size: Dim) -> Dim:
        if not computed or isinstance(size, int):
            return size
        return replaced(size, lambda atom: computed.get(atom.name) if isinstance(atom, Symbol) else None)

    shapes = {value.name: tuple(map(plain, known.shape(value) or ())) for value in model.graph.inputs if value.name}
    kinds = _kinds(model, known, shapes)
    kinds |= {one.name: counting[value] for value, sizes in counts.items() for size in sizes for one in size.symbols}
    values = dict[str, Shape]()
    for output in (output for node in model.graph for output in node.outputs if kinds and output.name):
        if (shape := known.shape(output)) is not None and output.name:
            with suppress(UndecidedError):
                values[output.name] = tuple(map(plain, shape))
    conditions = list[Condition]()
    for one in size_conditions(model, known) if kinds else ():
        with suppress(UndecidedError):
            changed = Condition(one.relation, plain(one.left), plain(one.right), one.is_firm)
            if changed.symbols and changed.symbols <= kinds.keys() and not _is_of_one(changed):
                conditions.append(changed)
    limits = {
        name: tuple(
            one for one in map(plain, rows) if isinstance(one, int) or {s.name for s in one.symbols} <= kinds.keys()
        )
        for name, rows in index_limits(model.graph, known).items()
    }
    for rows in (rows for many in limits.values() for rows in many if isinstance(rows, Size)):
        kinds.update({one.name: LENGTH for one in rows.symbols if kinds[one.name] == BATCH})  # one row is no choice
    by_name = {value.name: sizes for value, sizes in counts.items() if value.name}
    texts = text_inputs(model.graph)
    return OpenSizes(kinds, tuple(conditions), shapes, limits, by_name, values, parameter_inputs(model.graph), texts)


def _elements_of(value: ir.Value) -> tuple[Size, ...]:
    """Returns a symbol for each element of a list of fixed length, or for one number."""
    assert value.shape is not None, "it was counted"
    return tuple(symbol(f"{value.name}[{i}]", 1) for i in range(math.prod(value.shape.numpy())))


def _is_of_one(condition: Condition) -> bool:
    """Returns whether a wish has a size that is 1 whatever the others are, as a slice of the last element is."""
    return (
        not condition.is_firm
        and condition.relation == EQUAL
        and any(
            all(evaluated(size, dict.fromkeys(condition.symbols, each)) == 1 for each in _PROBES)
            for size in (condition.left, condition.right)
        )
    )


def _with_ranks(model: ir.Model) -> ir.Model:
    """Returns the model, or a copy of it in which inputs of which not even the rank is known have one."""
    if all(value.shape is not None or not isinstance(value.type, ir.TensorType) for value in model.graph.inputs):
        return model
    copy = model.clone()
    for value in copy.graph.inputs:
        if value.shape is None and isinstance(value.type, ir.TensorType):
            value.shape = ir.Shape([f"{value.name}.{axis}" for axis in range(likely_rank(value))])
    return copy


def _kinds(model: ir.Model, known: KnownSizes, shapes: Mapping[str, Shape]) -> dict[str, str]:
    """Returns for each symbol of the inputs what it probably is; who stands in several axes is what the first says."""
    found: dict[str, str] = {}
    spatial = spatial_symbols(model, known)
    floats = {value.name for value in model.graph.inputs if value.dtype is not None and value.dtype.is_floating_point()}
    for name, shape in shapes.items():
        dims = [size if isinstance(size, int) else None for size in shape]
        for axis, size in enumerate(shape):
            for one in size.symbols if isinstance(size, Size) else ():
                dim = None if one.name.startswith(f"{name}.{axis}") else one.name
                kind = kind_of(dim, axis, dims, spatial.get(one.name, 0) if name in floats else 0)
                found.setdefault(one.name, PAST if kind == IMAGE and is_past(name) else kind)
    return found
