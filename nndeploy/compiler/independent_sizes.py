# SPDX-License-Identifier: Apache-2.0
"""Symbols of inputs that are not one size, although a model uses one name: each place is then a size of its own.

    x: [N, N] -> MatMul(x, w: [3, 4])      N: one of the two is 3, the other is not
    a: [N], b: [N] -> Concat(a, b)         N: ONNX Runtime runs the model on a: [4] and b: [8]
    a: [N], b: [N] -> Add(a, b)            N is one size: no engine runs it on others

ONNX Runtime never holds the sizes of a call against such names. Most wrong ones are found by the operators' own rules
alone, at sizes that differ; only where these contradict nothing, the model is run.

Law: a symbol that is given up stands for sizes with which the model was seen to run, or that the user's samples
contradict.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from nndeploy.bundle.manifest import NamedType
from nndeploy.checking.engines import EVALUATOR, Engines, engines_here, is_reference_engine
from nndeploy.checking.open_sizes import OpenSizes, open_sizes
from nndeploy.checking.samples import Sample, generated_samples
from nndeploy.compiler.compilation import Compilation
from nndeploy.errors import BuildRefusedError
from nndeploy.frontend.load import LoadedModel
from nndeploy.plugin.interface import BuildOptions
from nndeploy.values.types import TensorType, Value

Place: TypeAlias = tuple[str, int]
"""An input and an axis of it."""

MAX_SYMBOLS = 8


def independent_symbols(compilation: Compilation, loaded: LoadedModel) -> frozenset[str]:
    """Returns the symbols that stand at several places of the inputs and are not one size.

    Those that the user gave a range or a name are left as they are.
    """
    asked = {dim for spec in compilation.options.shapes.values() for dim in getattr(spec, "dims", ())}
    shared = {
        symbol: places
        for symbol, places in _places(loaded.inputs).items()
        if len(places) > 1 and symbol not in loaded.ranges and symbol not in asked
    }
    trial = _Trial(compilation, loaded) if shared else None
    samples = compilation.options.samples or ()
    return frozenset(
        symbol
        for symbol, places in list(shared.items())[:MAX_SYMBOLS]
        if any(len(_sizes_in(sample, places)) > 1 for sample in samples) or (trial and trial.runs_with_others(places))
    )


def _places(inputs: Iterable[NamedType]) -> dict[str, list[Place]]:
    found: dict[str, list[Place]] = {}
    for named in inputs:
        shape = named.type.shape if isinstance(named.type, TensorType) else None
        for axis, dim in enumerate(shape or ()):
            if isinstance(dim, str):
                found.setdefault(dim, []).append((named.name, axis))
    return found


def _sizes_in(sample: Mapping[str, Value], places: Iterable[Place]) -> set[int]:
    """Returns the sizes that a sample has at some places, as far as it has them."""
    found = ((sample.get(name), axis) for name, axis in places)
    return {value.shape[axis] for value, axis in found if isinstance(value, np.ndarray) and axis < value.ndim}


class _Trial:
    """Runs a model on the first library that is a reference, at sizes that differ; never where there is none."""

    def __init__(self, compilation: Compilation, loaded: LoadedModel) -> None:
        options, host = compilation.options, compilation.host
        self._engines = Engines(
            compilation.workers, host, BuildOptions(options.threads, {}, options.custom_op_libraries)
        )
        names = (name for name in engines_here(host) if is_reference_engine(name) and name != EVALUATOR)
        self._library = next(names, "")
        self._loaded = loaded.without_defaults() if loaded.defaults else loaded

    @cached_property
    def _model(self) -> bytes:
        return bytes(self._loaded.original.SerializeToString())

    def runs_with_others(self, places: Sequence[Place]) -> bool:
        """Returns whether the library runs the model where some places of its inputs have sizes that differ."""
        if not self._library:
            return False
        sample = _sample_of_other_sizes(self._loaded, {place: f"place_{i}" for i, place in enumerate(places)})
        if sample is None:
            return False
        try:
            self._engines.outputs(self._library, self._model, [sample])
        except BuildRefusedError:
            return False
        return True


def _sample_of_other_sizes(loaded: LoadedModel, names: Mapping[Place, str]) -> Sample | None:
    """Returns inputs whose sizes differ at the places in `names`, None where the operators rule that out."""
    model = loaded.model.clone()
    for value in model.graph.inputs:
        if value.shape is not None and value.name:
            value.shape = ir.Shape([names.get((value.name, axis), dim) for axis, dim in enumerate(value.shape)])
    inputs = [replace(named, type=_renamed(named, names)) for named in loaded.inputs]
    unknown = open_sizes(model)
    first = next(generated_samples(model, inputs, {}, 0, unknown), None)
    if first is None:
        return None
    base = max(2, *(first.sizes.get(name, 0) for name in names.values()))
    told = {name: first.sizes[name] for name in names.values() if _is_told(unknown, first.sizes, name)}
    sizes = {name: told.get(name, base * number) for number, name in enumerate(names.values(), start=2)}
    if len(set(sizes.values())) == 1 or 1 in sizes.values() or unknown.breaks({**first.sizes, **sizes}):
        return None
    return next(generated_samples(model, inputs, sizes, 0, unknown), None)


def _is_told(unknown: OpenSizes, sizes: Mapping[str, int], name: str) -> bool:
    """Returns whether no other size goes with the rest, as where a weight tells one."""
    return unknown.breaks({**sizes, name: 2 * sizes[name]}) and unknown.breaks({**sizes, name: sizes[name] + 1})


def _renamed(named: NamedType, names: Mapping[Place, str]) -> TensorType:
    assert isinstance(named.type, TensorType)
    shape = named.type.shape
    if shape is None:
        return named.type
    return replace(named.type, shape=tuple(names.get((named.name, axis), dim) for axis, dim in enumerate(shape)))
