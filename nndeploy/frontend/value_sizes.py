# SPDX-License-Identifier: Apache-2.0
"""Whether a model makes a value that no memory here can hold: a few bytes of model may ask for any number of them.

In: a model with inferred types. A size that depends on the inputs is not known yet; the limits of the processes that
compute it hold for those.
"""

import math

import onnx_ir as ir

from nndeploy.errors import ModelError

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def check_value_sizes(model: ir.Model, max_bytes: int) -> None:
    """Passes a model each of whose values takes at most `max_bytes`, as far as its shape is known.

    Raises:
        ModelError: one takes more.
    """
    graphs = [model.graph, *(function.graph for function in model.functions.values())]
    for node in (node for graph in graphs for node in graph.all_nodes()):
        for value in node.outputs:
            if (num_bytes := _num_bytes(value)) > max_bytes:
                raise ModelError(
                    f"makes {value.name!r:.80} of {_size_text(num_bytes)}, {_shape_text(value)}; "
                    f"the limit of the memory is {_size_text(max_bytes)}",
                    where=f"node {node.name!r:.80} ({node.op_type:.80})",
                    hint="--memory-limit, if this machine has it",
                )


def _num_bytes(value: ir.Value) -> int:
    """Returns the bytes of a tensor, 0 where they are not known; sizes that depend on the inputs count as 1."""
    if value.shape is None or value.dtype is None or value.dtype == ir.DataType.STRING:
        return 0
    sizes = [size if isinstance(size, int) else 1 for size in value.shape]
    return math.ceil(math.prod(sizes) * value.dtype.itemsize)


def _shape_text(value: ir.Value) -> str:
    return f"{value.dtype} {value.shape}"[:120]


def _size_text(num_bytes: int) -> str:
    unit = min(len(_UNITS) - 1, max(0, num_bytes.bit_length() - 1) // 10)
    return f"{num_bytes / 1024**unit:.3g} {_UNITS[unit]}"
