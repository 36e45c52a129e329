# SPDX-License-Identifier: Apache-2.0
"""Types of outputs that a model declares and the load could not confirm: as the passes and the reference show them.

    before        shown                                  becomes
    [?, ?]        [N, 2] after the passes                [N, 2]
    [1, seq]      (5, 1, 1) by the reference             a tensor of any rank
    [2, 4]        (3, 4) by the reference                [?, 4]

Law: of the types that are left none contradicts an output that the reference gave.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from nndeploy.bundle.manifest import NamedType
from nndeploy.checking.original import Original
from nndeploy.frontend.load import LoadedModel
from nndeploy.values.types import Dim, TensorType, Value


def as_observed(
    loaded: LoadedModel, models: Iterable[ir.Model], original: Original
) -> tuple[LoadedModel, tuple[str, ...]]:
    """Returns the model with outputs as they were observed, and warnings; the outputs of `models` follow, in place."""
    symbols = {dim for named in loaded.inputs for dim in _dims_of(named) if isinstance(dim, str)}
    made = zip(loaded.outputs, loaded.model.graph.outputs, strict=True)
    known = [_as_inferred(named, value, symbols) for named, value in made]
    outputs = tuple(_observed(named, original.outputs) for named in known)
    pairs = list(zip(known, outputs, strict=True))
    changed = {after.name: after.type for before, after in pairs if before != after}
    for value in (value for model in models for value in model.graph.outputs):
        kind = changed.get(value.name or "")
        if isinstance(kind, TensorType):
            value.shape = None if kind.shape is None else ir.Shape(kind.shape)
    warnings = [f"output {a.name!r:.80} does not have the declared shape: {a.type}" for a, b in pairs if a != b]
    return replace(loaded, outputs=outputs), tuple(warnings)


def _dims_of(named: NamedType) -> tuple[Dim, ...]:
    return (named.type.shape or ()) if isinstance(named.type, TensorType) else ()


def _as_inferred(named: NamedType, value: ir.Value, symbols: Set[str]) -> NamedType:
    """Returns the output with what passes found since the load: its rank, fixed sizes, and sizes of inputs."""
    kind, shape = named.type, value.shape
    if not isinstance(kind, TensorType) or shape is None or len(shape) != len(kind.shape or shape):
        return named
    sizes = [size if isinstance(size, int) else size.value for size in shape]
    found = [size if isinstance(size, int) or size in symbols else None for size in sizes]
    known = found if kind.shape is None else kind.shape
    dims = tuple(size if dim is None else dim for dim, size in zip(known, found, strict=True))
    return replace(named, type=replace(kind, shape=dims))


def _observed(named: NamedType, outputs: Sequence[Mapping[str, Value]]) -> NamedType:
    """Returns the output without the rank or the fixed sizes that some output of the reference does not have."""
    kind = named.type
    given = [value for output in outputs if isinstance(value := output.get(named.name), np.ndarray)]
    if not isinstance(kind, TensorType) or kind.shape is None:
        return named
    if any(value.ndim != len(kind.shape) for value in given):
        return replace(named, type=replace(kind, shape=None))
    dims = [
        None if isinstance(dim, int) and any(value.shape[axis] != dim for value in given) else dim
        for axis, dim in enumerate(kind.shape)
    ]
    return replace(named, type=replace(kind, shape=tuple(dims)))
