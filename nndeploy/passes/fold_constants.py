# SPDX-License-Identifier: Apache-2.0
"""f(c1, c2, ...) -> initializer holding the result, for constant c1, c2, ... and an operator f of the table below.

The table is an allow-list. It leaves out on purpose: random operators, control flow, everything from other domains,
strings and sequences, quantisation (a backend wants to see QuantizeLinear and DequantizeLinear), and operators whose
older versions mean something else than the evaluator computes. Opsets below 7 are left alone: their broadcasting is
another one.

Conditions, all checked before anything is evaluated, on the constants themselves and never on what the model claims:
* the result is at most `MAX_RESULT_BYTES`, or not larger than the constants that are of no use afterwards;
* all results together add at most `MAX_GROWTH_BYTES` to a model (a doubling chain of Concat stops there);
* arithmetic reads at most `MAX_OPERAND_BYTES`, a matrix product takes at most `MAX_PRODUCTS` multiplications;
* the result is defined: no division of integers by zero, no cast of a number to an integer type that cannot hold it.

Floating-point arithmetic is done in float64 and rounded once to the type of the model, so float16 gains precision.
What the evaluator refuses is left as it is, for a backend to report.

Source: ONNX's reference evaluator computes the results.
"""

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import onnx
import onnx_ir as ir

from nndeploy.graph.constants import Array, constant_array, constant_tensor
from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.node_parameters import cast_target
from nndeploy.graph.operators import int_attribute, only_user, static_shape
from nndeploy.passes.model_pass import NodePass

MAX_RESULT_BYTES = 2 << 20
MAX_GROWTH_BYTES = 64 << 20
MAX_OPERAND_BYTES = 64 << 20
MAX_PRODUCTS = 1 << 28
EXACT_IN_FLOAT32 = 1 << 24
"""float32 holds each whole number up to this one."""
OLDEST_OPSET = 7

SizeBound: TypeAlias = Callable[[ir.Node, Sequence[Array]], int]
"""An upper bound of the number of elements of each output, from the constant inputs."""

_SPENT = "nndeploy.folded_bytes"
_TYPES = frozenset(
    {
        ir.DataType.BOOL, ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.FLOAT, ir.DataType.DOUBLE,
        ir.DataType.INT8, ir.DataType.INT16, ir.DataType.INT32, ir.DataType.INT64,
        ir.DataType.UINT8, ir.DataType.UINT16, ir.DataType.UINT32, ir.DataType.UINT64,
    }
)  # fmt: skip


def _size_of_all(_node: ir.Node, arrays: Sequence[Array]) -> int:
    return sum(array.size for array in arrays)


def _size_of_broadcast(_node: ir.Node, arrays: Sequence[Array]) -> int:
    return math.prod(np.broadcast_shapes(*(array.shape for array in arrays)))


def _size_of_product(_node: ir.Node, arrays: Sequence[Array]) -> int:
    left, right = arrays
    rows = left.shape[-2] if left.ndim > 1 else 1
    columns = right.shape[-1] if right.ndim > 1 else 1
    size = math.prod(np.broadcast_shapes(left.shape[:-2], right.shape[:-2])) * rows * columns
    if size * left.shape[-1] > MAX_PRODUCTS:
        raise ValueError(f"{size * left.shape[-1]} multiplications")
    return size


def _size_of_shape(_node: ir.Node, arrays: Sequence[Array]) -> int:
    return math.prod(arrays[0].tolist())


def _size_of_expanded(_node: ir.Node, arrays: Sequence[Array]) -> int:
    return math.prod(np.broadcast_shapes(arrays[0].shape, tuple(arrays[1].tolist())))


def _size_of_tiled(_node: ir.Node, arrays: Sequence[Array]) -> int:
    return int(arrays[0].size * math.prod(arrays[1].tolist()))


def _size_of_range(_node: ir.Node, arrays: Sequence[Array]) -> int:
    start, limit, delta = (array.item() for array in arrays)
    if not all(map(_is_whole, arrays)):
        raise ValueError("the length of a floating-point range depends on rounding")
    return max(0, -int(-(limit - start) // delta))


def _is_whole(array: Array) -> bool:
    """Whether a number is an integer, or a whole one of 32 bits or more below which none is rounded."""
    number = array.item()
    if isinstance(number, int):
        return True
    return array.dtype.itemsize >= 4 and number.is_integer() and abs(number) <= EXACT_IN_FLOAT32


def _size_of_gathered(node: ir.Node, arrays: Sequence[Array]) -> int:
    data, indices = arrays
    return int(indices.size * data.size // max(1, data.shape[int_attribute(node, "axis", 0)]))


def _size_of_one_hot(_node: ir.Node, arrays: Sequence[Array]) -> int:
    indices, depth = arrays[0], int(arrays[1].item())
    if not np.all((indices >= 0) & (indices < depth)):
        raise ValueError("what an index beside the depth means depends on the version")
    return int(indices.size * depth)


def _size_of_nonzero(_node: ir.Node, arrays: Sequence[Array]) -> int:
    return arrays[0].size * max(1, arrays[0].ndim)


_ARITHMETIC: dict[str, SizeBound] = {
    **dict.fromkeys(
        (
            "Abs", "Ceil", "Cos", "Erf", "Exp", "Floor", "LayerNormalization", "LeakyRelu", "Log", "Neg", "Reciprocal",
            "Relu", "Round", "Sigmoid", "Sign", "Sin", "Softplus", "Sqrt", "Tanh", "CumSum", "ReduceL1", "ReduceL2",
            "ReduceLogSum", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
        ),
        _size_of_all,
    ),
    **dict.fromkeys(
        ("Add", "Clip", "Div", "Max", "Mean", "Min", "Mod", "Mul", "Pow", "Sub", "Sum"), _size_of_broadcast
    ),
    "MatMul": _size_of_product,
}  # fmt: skip

_EXACT: dict[str, SizeBound] = {
    **dict.fromkeys(
        (
            "ArgMax", "ArgMin", "BitwiseNot", "Cast", "Concat", "Flatten", "Identity", "IsInf", "IsNaN", "Not",
            "Reshape", "ScatterElements", "ScatterND", "Size", "Slice", "Split", "Squeeze", "Transpose", "Trilu",
            "Unsqueeze",
        ),
        _size_of_all,
    ),
    **dict.fromkeys(
        (
            "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "Greater", "GreaterOrEqual", "Less",
            "LessOrEqual", "Or", "Where", "Xor",
        ),
        _size_of_broadcast,
    ),
    "ConstantOfShape": _size_of_shape,
    "Expand": _size_of_expanded,
    "Gather": _size_of_gathered,
    "NonZero": _size_of_nonzero,
    "OneHot": _size_of_one_hot,
    "Range": _size_of_range,
    "Tile": _size_of_tiled,
}  # fmt: skip

_SIZE_BOUNDS = {**_ARITHMETIC, **_EXACT}


class FoldConstants(NodePass):
    """Evaluates nodes whose inputs are all constant."""

    name = "fold-constants"
    enters_bodies = True
    ops = frozenset(_SIZE_BOUNDS)

    def rewrite_node(self, node: ir.Node, edits: GraphEdits) -> bool:
        """Returns whether the node's outputs became constants."""
        if edits.opset < OLDEST_OPSET or not _can_be_constant(node):
            return False
        arrays = _constant_inputs(node)
        if arrays is None or not _is_defined(node, arrays) or not _spend(node, arrays, edits.model):
            return False
        results = _evaluate(node, arrays, edits.opset)
        if results is None:
            return False
        edits.become_constants(node, [ir.tensor(result) for result in results])
        return True


def _can_be_constant(node: ir.Node) -> bool:
    if not node.inputs or any(constant_tensor(value) is None for value in node.inputs if value is not None):
        return False
    if not all(output.name for output in node.outputs):
        return False
    return len(node.outputs) == 1 or not any(output.is_graph_output() for output in node.outputs)


def _constant_inputs(node: ir.Node) -> list[Array | None] | None:
    tensors = [constant_tensor(value) for value in node.inputs]
    if any(tensor is not None and tensor.dtype not in _TYPES for tensor in tensors):
        return None
    num_bytes = sum(tensor.nbytes for tensor in tensors if tensor is not None)
    if node.op_type in _ARITHMETIC and num_bytes > MAX_OPERAND_BYTES:
        return None
    return [constant_array(value) for value in node.inputs]


def _is_defined(node: ir.Node, arrays: Sequence[Array | None]) -> bool:
    first, *others = arrays
    if first is None:
        return False
    if node.op_type in ("Div", "Mod") and first.dtype.kind in "iu":
        divisor = others[0]
        return divisor is not None and bool(((divisor != 0) & (divisor.astype(np.int64) != -1)).all())
    if node.op_type == "Cast":
        return _can_be_cast(first, cast_target(node))
    return node.op_type != "Erf" or first.dtype != np.float64  # ONNX's evaluator gives an Erf in float32


def _can_be_cast(array: Array, target: ir.DataType | None) -> bool:
    if target is None or target not in _TYPES:
        return False
    if not _is_float(array) or not target.is_integer():
        return True
    whole, limits = np.trunc(array.astype(np.float64)), np.iinfo(target.numpy())
    return bool(((whole >= float(limits.min)) & (whole < float(limits.max) + 1.0)).all())


def _spend(node: ir.Node, arrays: Sequence[Array | None], model: ir.Model) -> bool:
    """Returns whether the result may be made, and counts what it adds to the model."""
    try:
        num_elements = _SIZE_BOUNDS[node.op_type](node, [array for array in arrays if array is not None])
    except (ValueError, IndexError, ZeroDivisionError, AttributeError, TypeError):
        return False
    item_bytes = max(float(output.dtype.itemsize) if output.dtype in _TYPES else 8.0 for output in node.outputs)
    result_bytes, freed_bytes = int(num_elements * item_bytes), _freed_bytes(node)
    spent = int(model.meta.get(_SPENT, 0)) + max(0, result_bytes - freed_bytes)
    if num_elements < 0 or result_bytes > max(MAX_RESULT_BYTES, freed_bytes) or spent > MAX_GROWTH_BYTES:
        return False
    model.meta[_SPENT] = spent
    return True


def _freed_bytes(node: ir.Node) -> int:
    tensors = [constant_tensor(value) for value in node.inputs if value is not None and only_user(value) is node]
    return sum(tensor.nbytes for tensor in tensors if tensor is not None)


def _evaluate(node: ir.Node, arrays: Sequence[Array | None], opset: int) -> list[Array] | None:
    widen = node.op_type in _ARITHMETIC
    feeds = {
        value.name or "": array.astype(np.float64) if widen and _is_float(array) else array
        for value, array in zip(node.inputs, arrays, strict=True)
        if value is not None and array is not None
    }
    evaluate = _evaluator(node, feeds, opset)
    try:
        with np.errstate(all="ignore"):
            results = list(evaluate())
    except Exception:  # whatever a wrong node raises in there: the node stays, and a backend says what is wrong
        return None
    if widen:
        results = [_in_type_of_model(np.asarray(result), arrays[0]) for result in results]
    fits = all(map(_is_as_inferred, node.outputs, results))
    return [np.asarray(result, order="C") for result in results] if fits else None


def _evaluator(node: ir.Node, feeds: dict[str, Array], opset: int) -> Callable[[], Sequence[Array]]:
    from onnx.reference import ReferenceEvaluator  # not at the top: most small models fold nothing

    function = onnx.FunctionProto(
        domain="nndeploy", name=node.op_type, input=feeds, node=[ir.serde.serialize_node(node)]
    )
    function.opset_import.add(domain="", version=opset)  # of a node alone the evaluator takes the newest version
    function.output.extend(output.name or "" for output in node.outputs)
    return lambda: list(ReferenceEvaluator(function).run(None, feeds, {}))


def _is_float(array: Array) -> bool:
    return array.dtype.kind not in "iub"


def _in_type_of_model(result: Array, first: Array | None) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        return result.astype(first.dtype) if first is not None and _is_float(result) else result


def _is_as_inferred(output: ir.Value, result: object) -> bool:
    if not isinstance(result, np.ndarray | np.generic):
        return False
    dtype_fits = output.dtype is None or output.dtype.numpy() == result.dtype
    return dtype_fits and static_shape(output) in (None, result.shape)
