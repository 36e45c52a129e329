# SPDX-License-Identifier: Apache-2.0
"""Types of outputs that a model declares and the load could not confirm: as the passes and the reference show them.

    before        shown                                  becomes
    [N, ?]        [N, 2] after the passes                [N, 2]
    [1, seq]      (5, 1, 1) by the reference             a tensor of any rank
    [N, N, 4]     (2, 3, 4) by the reference, N = 2      [N, ?, 4]

Law: of the types that are left none contradicts an output that the reference gave.
"""

from collections.abc import Iterable, Mapping, Sequence
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
    sizes = [_sizes_of(loaded.inputs, sample) for sample in original.samples]
    known = [
        _as_inferred(named, value) for named, value in zip(loaded.outputs, loaded.model.graph.outputs, strict=True)
    ]
    outputs = tuple(_observed(named, original.outputs, sizes) for named in known)
    pairs = list(zip(known, outputs, strict=True))
    changed = {after.name: after.type for before, after in pairs if before != after}
    for value in (value for model in models for value in model.graph.outputs):
        kind = changed.get(value.name or "")
        if isinstance(kind, TensorType):
            value.shape = None if kind.shape is None else ir.Shape(kind.shape)
    warnings = [f"output {a.name!r:.80} is no {a.type}, as the model declares" for a, b in pairs if a != b]
    return replace(loaded, outputs=outputs), tuple(warnings)


def _as_inferred(named: NamedType, value: ir.Value) -> NamedType:
    """Returns the output with the fixed sizes that passes found since the load."""
    kind, shape = named.type, value.shape
    if not isinstance(kind, TensorType) or kind.shape is None or shape is None or len(shape) != len(kind.shape):
        return named
    pairs = zip(kind.shape, shape, strict=True)
    dims = tuple(size if dim is None and isinstance(size, int) else dim for dim, size in pairs)
    return replace(named, type=replace(kind, shape=dims))


def _sizes_of(inputs: Iterable[NamedType], sample: Mapping[str, Value]) -> dict[str, int]:
    """Returns symbol -> size in one sample."""
    found: dict[str, int] = {}
    for named in inputs:
        value = sample.get(named.name)
        if isinstance(value, np.ndarray) and isinstance(named.type, TensorType) and named.type.shape is not None:
            pairs = zip(named.type.shape, value.shape, strict=False)
            found.update((dim, size) for dim, size in pairs if isinstance(dim, str))
    return found


def _observed(
    named: NamedType, outputs: Sequence[Mapping[str, Value]], sizes: Sequence[Mapping[str, int]]
) -> NamedType:
    kind = named.type
    given = [value for output in outputs if isinstance(value := output.get(named.name), np.ndarray)]
    if not isinstance(kind, TensorType) or kind.shape is None or len(given) < len(sizes):
        return named
    if any(value.ndim != len(kind.shape) for value in given):
        return replace(named, type=replace(kind, shape=None))

    def seen(axis: int, dim: Dim) -> Dim:
        expected = [known.get(dim) if isinstance(dim, str) else dim for known in sizes]
        is_right = all(want in (None, value.shape[axis]) for want, value in zip(expected, given, strict=True))
        return dim if is_right else None

    return replace(named, type=replace(kind, shape=tuple(seen(axis, dim) for axis, dim in enumerate(kind.shape))))
