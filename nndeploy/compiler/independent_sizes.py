# SPDX-License-Identifier: Apache-2.0
"""Symbols of inputs that are not one size, although a model uses one name: each place is then a size of its own.

    x: [N, N] -> MatMul(x, w: [3, 4])      N: one of the two is 3, the other is not
    a: [N], b: [N] -> Concat(a, b)         N: ONNX Runtime runs the model on a: [4] and b: [8]
    a: [N], b: [N] -> Add(a, b)            N is one size: no engine runs it on others

ONNX Runtime never holds the sizes of a call against such names. Most wrong ones are found by shape inference alone, at
sizes that differ; only where that contradicts nothing, the model is run.

Law: a symbol that is given up stands for sizes with which the model was seen to run, or that its weights or the
user's samples contradict.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from nndeploy.bundle.manifest import NamedType
from nndeploy.checking.engines import EVALUATOR, Engines, engines_here, is_reference_engine
from nndeploy.checking.likely_sizes import sizes_from_weights
from nndeploy.checking.samples import generated_samples
from nndeploy.compiler.compilation import Compilation
from nndeploy.errors import BuildRefusedError
from nndeploy.frontend.load import LoadedModel
from nndeploy.frontend.sizes_that_fit import do_sizes_fit
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
    told = sizes_from_weights(loaded.model.graph) if shared else {}
    samples = compilation.options.samples or ()
    return frozenset(
        symbol
        for symbol, places in list(shared.items())[:MAX_SYMBOLS]
        if len({told.get(place) for place in places}) > 1
        or any(len(_sizes_in(sample, places)) > 1 for sample in samples)
        or _runs_with_others(compilation, loaded, symbol, places)
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


def _runs_with_others(compilation: Compilation, loaded: LoadedModel, symbol: str, places: Sequence[Place]) -> bool:
    """Returns whether a library runs the model where the places of a symbol have sizes that differ."""
    closed = loaded.without_defaults() if loaded.defaults else loaded
    first = next(generated_samples(loaded.model.graph, closed.inputs, {}, 0), None)
    base = max(2, *_sizes_in(first or {}, places), 2)
    sizes = {place: base * number for number, place in enumerate(places, start=1)}
    if first is None or not do_sizes_fit(closed.original, sizes):
        return False
    names = {place: f"{symbol}/{number}" for number, place in enumerate(places)}
    inputs = [replace(named, type=_renamed(named, names)) for named in closed.inputs]
    chosen = {names[place]: size for place, size in sizes.items()}
    sample = next(generated_samples(loaded.model.graph, inputs, chosen, 0), None)
    options = compilation.options
    engines = Engines(
        compilation.workers, compilation.host, BuildOptions(options.threads, {}, options.custom_op_libraries)
    )
    libraries = [name for name in engines_here(compilation.host) if is_reference_engine(name) and name != EVALUATOR]
    if sample is None or not libraries:
        return False
    try:
        engines.outputs(libraries[0], closed.original.SerializeToString(), [sample])
    except BuildRefusedError:
        return False
    return True


def _renamed(named: NamedType, names: Mapping[Place, str]) -> TensorType:
    assert isinstance(named.type, TensorType)
    shape = named.type.shape
    if shape is None:
        return named.type
    return replace(named.type, shape=tuple(names.get((named.name, axis), dim) for axis, dim in enumerate(shape)))
