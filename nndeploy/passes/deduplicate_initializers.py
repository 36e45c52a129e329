# SPDX-License-Identifier: Apache-2.0
"""c = T, d = T -> every reader of d reads c, for initializers of one graph with equal type, shape and bytes.

The first of them stays. Bytes are compared, not numbers: 0.0 and -0.0 differ, equal NaNs do not.

Conditions: not text; no input (a caller may override it) and no output of the graph.

Source: ONNX IR: an initializer is a constant of its graph.
"""

import hashlib
from collections.abc import Hashable, Iterable

import numpy as np
import onnx_ir as ir

from nndeploy.graph.constants import sizes_of
from nndeploy.passes.model_pass import ModelPass

_DIGEST = "nndeploy.digest"


class DeduplicateInitializers(ModelPass):
    """Keeps one of several equal initializers."""

    name = "deduplicate-initializers"

    def rewrite(self, model: ir.Model) -> int:
        """Rewrites the model in place; returns how many initializers it removed."""
        return sum(_keep_first(model.graph, alike) for alike in _alike(model.graph.initializers.values()))


def _alike(initializers: Iterable[ir.Value]) -> Iterable[list[ir.Value]]:
    """Returns groups of initializers of equal type and shape: only these need to be compared."""
    groups: dict[Hashable, list[ir.Value]] = {}
    for value in initializers:
        tensor = value.const_value
        if tensor is not None and tensor.dtype != ir.DataType.STRING:
            groups.setdefault((tensor.dtype, sizes_of(tensor)), []).append(value)
    return [group for group in groups.values() if len(group) > 1]


def _keep_first(graph: ir.Graph, alike: list[ir.Value]) -> int:
    first_of_bytes: dict[bytes, ir.Value] = {}
    count = 0
    for value in alike:
        if value.is_graph_input() or value.is_graph_output() or value.const_value is None or value.name is None:
            continue
        first = first_of_bytes.setdefault(_digest(value, value.const_value), value)
        if first is not value:
            value.replace_all_uses_with(first)
            del graph.initializers[value.name]
            count += 1
    return count


def _digest(value: ir.Value, tensor: ir.TensorProtocol) -> bytes:
    """Returns a hash of the tensor's bytes; it is kept with the value, because the pass runs in every round."""
    kept = value.meta.get(_DIGEST)
    if kept is None or kept[0] is not tensor:
        data = np.ascontiguousarray(tensor.numpy()).view(np.uint8).data
        kept = value.meta[_DIGEST] = (tensor, hashlib.sha256(data).digest())
    digest: bytes = kept[1]
    return digest
