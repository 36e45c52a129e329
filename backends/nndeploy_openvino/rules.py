# SPDX-License-Identifier: Apache-2.0
"""Nodes that OpenVINO would take and get wrong, or whose values cannot cross: refused before the library is asked.

OpenVINO's CPU device computes some types as others (asked of the library, see `narrowing`): float64 as float32, and
64-bit and unsigned 32-bit integers as int32. float64 and the unsigned ones are refused. int64 is everywhere in ONNX,
as numbers of words, masks, sizes and indices, and those fit. What enters is looked at in each call (`session.py`: a
value beyond 32 bits is an error there), so a node is refused only where it makes an int64 value that is none of these:

    a size      depends on shapes and constants alone
    an index    was made by an operator that gives positions (ArgMax, NonZero, ...), or computed from such values
    moved       was an int64 value before: no arithmetic made it larger
    clipped     was cast from a float between constant limits that fit
    only used as an index or a size: what does not fit is none that is legal

Arithmetic on 8-bit integers saturates in OpenVINO and wraps around in ONNX; moving them about is the same in both.
Each rule was seen to give wrong numbers, or to end the process, with OpenVINO 2026.4.1.
"""

from collections.abc import Iterator, Mapping
from functools import cache

import numpy as np
import onnx_ir as ir

from nndeploy.backend_kit.query import constant_of
from nndeploy.backend_kit.sizes_of_calls import unbounded_sizes
from nndeploy.backend_kit.spans import ANY, Spans
from nndeploy.graph.nodes import bodies
from nndeploy.graph.operators import int_attribute
from nndeploy.values.types import DimRange
from nndeploy_openvino.element_types import crosses
from nndeploy_openvino.indices import unproven_index
from nndeploy_openvino.library import configuration, core, openvino

INDEX_OUTPUTS = {
    "ArgMax": {0}, "ArgMin": {0}, "NonZero": {0}, "NonMaxSuppression": {0}, "TopK": {1}, "Unique": {1, 2, 3},
    "MaxPool": {1}, "Shape": {0}, "Size": {0},
}  # fmt: skip
"""Operator -> outputs that are positions or sizes."""

MOVERS = frozenset({
    "Identity", "Concat", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Expand", "Tile", "Slice", "Split",
    "Gather", "GatherElements", "GatherND", "Where", "Max", "Min", "Clip", "Cast", "Add", "Sub", "Mul", "Div", "Mod",
    "Neg", "Abs", "CumSum", "ReduceSum", "ReduceMax", "ReduceMin",
})  # fmt: skip
"""Operators whose int64 output is a position or count where their int64 inputs are, such as y * width + x."""

KEEPERS = frozenset({
    "Identity", "Concat", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Expand", "Tile", "Slice", "Split",
    "Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND", "Where", "Max", "Min", "Clip", "ReduceMax",
    "ReduceMin", "If",
})  # fmt: skip
"""Operators whose int64 outputs hold no value that was not among their inputs."""

SIZE_INPUTS = {
    "Gather": {1}, "GatherElements": {1}, "GatherND": {1}, "Scatter": {1}, "ScatterElements": {1}, "ScatterND": {1},
    "OneHot": {0, 1}, "Reshape": {1}, "Expand": {1}, "Tile": {1}, "Slice": {1, 2, 3, 4}, "Pad": {1, 3},
    "Unsqueeze": {1}, "Squeeze": {1}, "Split": {1}, "TopK": {1}, "ConstantOfShape": {0}, "Resize": {3, 4},
    "Upsample": {1}, "CumSum": {1}, "Trilu": {1}, "ReverseSequence": {1}, "CenterCropPad": {1}, "Loop": {0},
    "ReduceSum": {1}, "ReduceMax": {1}, "ReduceMin": {1}, "ReduceMean": {1}, "ReduceProd": {1}, "ReduceL1": {1},
    "ReduceL2": {1}, "ReduceLogSum": {1}, "ReduceLogSumExp": {1}, "ReduceSumSquare": {1}, "MaxUnpool": {1, 2},
    "NonMaxSuppression": {2}, "RoiAlign": {2}, "AffineGrid": {1}, "DFT": {1, 2}, "STFT": {1, 3}, "Dropout": {2},
}  # fmt: skip
"""Operator -> inputs that hold indices, axes or sizes, which fit into 32 bits wherever they are legal."""

WRAPPING_8_BIT = frozenset({
    "Add", "Sub", "Mul", "Div", "Neg", "Abs", "Pow", "Sum", "Mod", "BitShift", "CumSum", "ReduceSum", "ReduceProd",
    "ReduceL1", "ReduceSumSquare", "MatMul", "Gemm",
})  # fmt: skip

WRONG_OPERATORS = {
    "BitShift": "OpenVINO shifts by the type's width and beyond, and the sign, otherwise than ONNX",
    "DFT": "OpenVINO gives DFT another axis or shape than ONNX",
    "GatherND": "OpenVINO reads beyond the tensor where an index of GatherND is out of it",
    "Scatter": "OpenVINO writes beyond the tensor where an index of Scatter is out of it",
    "ScatterElements": "OpenVINO writes beyond the tensor where an index of ScatterElements is out of it",
    "Col2Im": "OpenVINO divides by sizes of Col2Im that may be zero",
    "RoiAlign": "OpenVINO takes other samples of regions beyond the image",
}

OF_INTEGERS_BY_FLOATS = frozenset({"Relu", "Shrink"})
"""Operators that OpenVINO computes in float32 for integers too."""
SUMS = frozenset({"ReduceSum", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare"})
"""The same; sums of truths, and of sizes and positions, are small enough."""

RIGHT_ONLY_WITH: dict[str, dict[str, object]] = {
    "LpPool": {"ceil_mode": 0}, "MaxPool": {"storage_order": 0},
    "Attention": {"left_window_size": -1, "right_window_size": -1},
    "GRU": {"layout": 0}, "LSTM": {"layout": 0, "input_forget": 0}, "RNN": {"layout": 0},
    "Resize": {"antialias": 0, "exclude_outside": 0, "keep_aspect_ratio_policy": "stretch"},
    "SpaceToDepth": {"mode": "DCR"},
}  # fmt: skip
"""Operator -> attributes that OpenVINO passes over, and the value at which that is right."""

IGNORED_INPUTS = {"LSTM": {7: "peepholes"}}
"""Operator -> inputs that OpenVINO passes over."""

STARTING_FROM_LARGEST = frozenset({"ReduceMax", "ReduceMin"})
"""Operators that begin with the largest float, where ONNX has infinity: a row of a mask that hides all of it."""

CARRYING_INFINITY = frozenset({
    "Add", "Sub", "Mul", "Div", "Neg", "Where", "Cast", "CastLike", "Identity", "Reshape", "Expand", "Unsqueeze",
    "Squeeze", "Flatten", "Transpose", "Slice", "Concat", "Gather", "Tile", "Trilu", "Pad", "Max", "Min", "Sum",
    "Constant", "ConstantOfShape", "ScatterND", "ScatterElements", "Split",
})  # fmt: skip
"""Operators through which an infinite constant comes out as such."""

FLOAT32_INTEGERS = 2**24
"""Up to here float32 holds each integer, and a quotient rounds to the right side of one."""
_SMALL_SOURCES = frozenset({"bool", "int8", "uint8", "int16", "uint16", "int32"})
_INT32 = np.iinfo(np.int32)


class Rules:
    """The rules for one model; what is known of its values is worked out once."""

    def __init__(self, ranges: Mapping[str, DimRange]) -> None:
        """Takes the ranges of symbolic sizes."""
        self._spans, self._ranges = Spans(), ranges
        self._is_size: dict[int, bool] = {}
        self._fits_known: dict[int, bool] = {}
        self._counters: set[int] = set()
        self._main: ir.Graph | ir.Function | None = None

    def __call__(self, node: ir.Node) -> str:
        """Returns why `node`, with all in its bodies, is refused, or ""."""
        self._main = node.graph
        return next((reason for inner in self._with_bodies(node) if (reason := self._refusal(inner))), "")

    def _with_bodies(self, node: ir.Node) -> Iterator[ir.Node]:
        yield node
        for body in bodies(node):
            if node.op_type == "Loop":
                self._counters.add(id(body.inputs[0]))
            for inner in body:
                yield from self._with_bodies(inner)

    def _refusal(self, node: ir.Node) -> str:
        read = [(i, value) for i, value in enumerate(node.inputs) if value is not None]
        made = [value for value in node.outputs if value.name and constant_of(value) is None]
        for value in (*(value for _, value in read if constant_of(value) is None), *made):
            if reason := _cannot_cross(value):
                return reason
        if reason := _wrong_by_itself(node):
            return reason
        if reason := unproven_index(node, self._main, self._spans, self._ranges):
            return reason
        if any(0 in list(value.shape or ()) for _, value in read if constant_of(value) is None):
            return "OpenVINO is not asked about tensors without elements"
        if node.op_type == "Loop" and _input(node, 0) is not None and self._spans.of(_input(node, 0))[0] < 0:
            return "OpenVINO never ends a Loop whose number of rounds, which a call may tell, is below 0"
        if unbounded_sizes(node, self._spans):
            return f"nobody bounds how many elements {node.op_type} makes of numbers of a call"
        if node.op_type in SUMS and _dtype(made[0]) == "int32" and self._spans.of(_input(node, 0)) == ANY:
            return f"OpenVINO computes {node.op_type} of int32 in float32"
        if _is_flattening(node, self._main):
            return f"OpenVINO takes {node.op_type} before opset 13 along one axis"
        if node.op_type in ("Div", "Mod") and self._is_inexact_division(node):
            return f"OpenVINO computes {node.op_type} of integers in float32, and divides by 0 otherwise"
        if node.op_type in WRAPPING_8_BIT and any(_dtype(v) in ("int8", "uint8") for v in made):
            return f"{node.op_type} of {_dtype(made[0])} saturates in OpenVINO, ONNX wraps around"
        sizes = SIZE_INPUTS.get(node.op_type, set())
        too_large = [value for i, value in read if i not in sizes and not _fits_where_constant(value)]
        for value in (*too_large, *(made if not _keeps_values(node) else ())):
            if _dtype(value) != "int64" or "int64" not in narrowing() or _is_used_as_index_alone(value):
                continue
            if not self._fits(value):
                return f"int64 {value.name!r} is data and would be computed as {narrowing()['int64']}"
        return ""

    def _is_inexact_division(self, node: ir.Node) -> bool:
        """Returns whether a division is of integers that need not be sizes or positions, or may be by 0."""
        dividend, divisor = _input(node, 0), _input(node, 1)
        if not _is_integer(divisor) or self._depends_on_shapes_alone(node.outputs[0]):
            return False
        low, high = self._spans.of(divisor)
        is_exact = _dtype(dividend) == "int64" or max(map(abs, self._spans.of(dividend))) < FLOAT32_INTEGERS
        return low <= 0 <= high or not is_exact

    def _fits(self, value: ir.Value) -> bool:
        """Returns whether an int64 value is a size or a position, and so fits into 32 bits."""
        if id(value) not in self._fits_known:
            self._fits_known[id(value)] = False  # a value that depends on itself through a body is not known to fit
            self._fits_known[id(value)] = self._depends_on_shapes_alone(value) or self._is_position(value)
        return self._fits_known[id(value)]

    def _is_position(self, value: ir.Value) -> bool:
        producer = value.producer()
        if producer is None:
            return id(value) in self._counters
        if value.index() in INDEX_OUTPUTS.get(producer.op_type, ()):
            return True
        if producer.op_type == "If":
            return all(self._fits(body.outputs[value.index() or 0]) for body in bodies(producer))
        if producer.op_type not in MOVERS:
            return False
        if producer.op_type == "Cast" and _is_clipped(producer.inputs[0]):
            return True
        sizes = SIZE_INPUTS.get(producer.op_type, set())
        sources = [v for i, v in enumerate(producer.inputs) if v is not None and i not in sizes]
        return all(_dtype(v) in _SMALL_SOURCES or (_dtype(v) == "int64" and self._fits(v)) for v in sources)

    def _depends_on_shapes_alone(self, value: ir.Value) -> bool:
        if id(value) not in self._is_size:
            self._is_size[id(value)] = False
            self._is_size[id(value)] = self._made_of_sizes(value)
        return self._is_size[id(value)]

    def _made_of_sizes(self, value: ir.Value) -> bool:
        if (constant := constant_of(value)) is not None:
            return _fits_int32(constant)
        producer = value.producer()
        if producer is None or any(True for _ in bodies(producer)):
            return False
        if producer.op_type in ("Shape", "Size"):
            return True
        sources = [v for v in producer.inputs if v is not None]
        return bool(sources) and all(self._depends_on_shapes_alone(v) for v in sources)


def _is_used_as_index_alone(value: ir.Value) -> bool:
    if value.is_graph_output() or not value.uses():
        return False
    return all(
        n.op_type != "Slice" and i in SIZE_INPUTS.get(n.op_type, ()) for n, i in value.uses()
    )  # ends may be huge


def _is_clipped(value: ir.Value | None) -> bool:
    """Returns whether a float comes from between two constants that fit into 32 bits."""
    clip = None if value is None else value.producer()
    if clip is None or clip.op_type != "Clip" or len(clip.inputs) != 3:
        return False
    limits = [constant_of(limit) for limit in clip.inputs[1:] if limit is not None]
    return len(limits) == 2 and all(
        found is not None and abs(found.numpy().item()) <= _INT32.max // 2 for found in limits
    )


@cache
def narrowing() -> dict[str, str]:
    """Returns the element types that the CPU device computes as narrower ones: ours -> OpenVINO's name of the other."""
    found = {}
    for name, kept in (("float64", "f64"), ("int64", "i64"), ("uint64", "u64"), ("uint32", "u32")):
        computed = _computed_as(kept)
        if computed != kept:
            found[name] = computed
    return found


def _computed_as(kept: str) -> str:
    """Returns the type in which the device joins two tensors of the type `kept`."""
    library = openvino()
    parts = [library.op.Parameter(getattr(library.Type, kept), library.Shape([2])) for _ in range(2)]
    model = library.Model([library.opset1.concat(parts, 0)], parts, "probe")
    compiled = core().compile_model(model, "CPU", configuration(1))
    info = [operation.get_rt_info() for operation in compiled.get_runtime_model().get_ordered_ops()]
    kinds = {_text(of["layerType"]): _text(of["runtimePrecision"]) for of in info if "layerType" in of}
    return kinds.get("Concatenation", kept)


def _text(info: object) -> str:
    return str(getattr(info, "value", info))


def _cannot_cross(value: ir.Value) -> str:
    if value.type is not None and not isinstance(value.type, ir.TensorType):
        return f"{value.name!r} is not a tensor"
    if value.dtype is None or value.dtype == ir.DataType.UNDEFINED:
        return ""
    if value.dtype == ir.DataType.STRING or not crosses(value.dtype.numpy()):
        return f"tensors of {_dtype(value)} do not cross into OpenVINO"
    if _dtype(value) != "int64" and _dtype(value) in narrowing():
        return f"{_dtype(value)} would be computed as {narrowing()[_dtype(value)]}"
    return ""


def _wrong_by_itself(node: ir.Node) -> str:
    """Returns why an operator with these attributes and inputs comes out wrong whatever the values are, or ""."""
    if node.domain == "com.microsoft" and node.op_type.startswith("QLinear"):
        return f"OpenVINO computes {node.op_type} without rounding and saturation"
    if node.op_type in WRONG_OPERATORS:
        return WRONG_OPERATORS[node.op_type]
    for name, right in RIGHT_ONLY_WITH.get(node.op_type, {}).items():
        attribute = node.attributes.get(name)
        if attribute is not None and attribute.value != right:
            return f"OpenVINO passes over {name} of {node.op_type}"
    if node.op_type in OF_INTEGERS_BY_FLOATS and _is_integer(_input(node, 0)):
        return f"OpenVINO computes {node.op_type} of integers in float32"
    is_ceiled, counts_pads = (int_attribute(node, name, 0) for name in ("ceil_mode", "count_include_pad"))
    if node.op_type == "AveragePool" and is_ceiled and counts_pads:
        return "OpenVINO divides by fewer elements where a window of AveragePool hangs over the end"
    if node.op_type == "LRN" and int_attribute(node, "size", 1) % 2 == 0:
        return "OpenVINO sums over other channels in an LRN of even size"
    if node.op_type in ("GRU", "LSTM", "RNN") and any(constant_of(_input(node, at)) is None for at in (1, 2)):
        return f"OpenVINO divides by the sizes of a {node.op_type} whose weights only a call tells"
    if node.op_type == "Scan" and not all(map(_has_elements, node.inputs)):
        return "OpenVINO divides by sizes of a Scan, which may be 0"
    if node.op_type in STARTING_FROM_LARGEST and any(_may_be_infinite(v) for v in node.inputs[:1] if v is not None):
        return f"OpenVINO gives the largest float for {node.op_type} of infinities"
    shape = node.inputs[0].shape if node.op_type in ("NonZero", "If") and node.inputs[0] is not None else None
    if shape is not None and bool(len(shape)) == (node.op_type == "If"):
        return f"OpenVINO takes a scalar of {node.op_type} for a vector, or the other way round"
    if node.op_type == "NonMaxSuppression" and not _is_above_zero(node, 3):
        return "OpenVINO leaves out boxes that do not overlap where the threshold is 0"
    if node.op_type == "Tile" and constant_of(_input(node, 1)) is None:
        return "OpenVINO crashes where a repeat of Tile that only a call tells is below zero"
    if (
        node.op_type == "Range"
        and _dtype(_input(node, 2)) in ("int32", "int64")
        and constant_of(_input(node, 2)) is None
    ):
        return "OpenVINO divides by a step of Range that may be zero"
    if node.op_type == "Loop" and _has_scan_outputs(node) and not (_is_true(node, 0) and _is_true(node, 1)):
        return "OpenVINO gives the scan outputs of a Loop that does not run one element"
    for at, what in IGNORED_INPUTS.get(node.op_type, {}).items():
        if len(node.inputs) > at and node.inputs[at] is not None:
            return f"OpenVINO passes over the {what} of {node.op_type}"
    return ""


def _may_be_infinite(value: ir.Value) -> bool:
    """Returns whether an infinite constant flows into a value."""
    waiting, seen = [value], {id(value)}
    while waiting:
        known = waiting.pop()
        if (constant := constant_of(known)) is not None:
            if constant.dtype.is_floating_point() and bool(np.isinf(constant.numpy().astype(np.float32)).any()):
                return True
            continue
        producer = known.producer()
        if producer is None or producer.op_type not in CARRYING_INFINITY:
            continue
        fill = producer.attributes.get("value")
        if producer.op_type == "ConstantOfShape" and fill is not None and np.isinf(fill.as_tensor().numpy()).any():
            return True
        fresh = [v for v in producer.inputs if v is not None and id(v) not in seen]
        seen.update(map(id, fresh))
        waiting += fresh
    return False


def _input(node: ir.Node, at: int) -> ir.Value:
    value = node.inputs[at]
    assert value is not None, "the checker demands it"
    return value


def _is_flattening(node: ir.Node, main: ir.Graph | ir.Function | None) -> bool:
    """Returns whether an operator takes all axes from one on together, which is not the last."""
    if node.op_type not in ("Softmax", "LogSoftmax", "Hardmax") or main is None:
        return False
    axis, shape = int_attribute(node, "axis", 1), _input(node, 0).shape
    return main.opset_imports.get("", 13) < 13 and (shape is None or axis not in (-1, len(shape) - 1))


def _is_above_zero(node: ir.Node, at: int) -> bool:
    value = node.inputs[at] if len(node.inputs) > at else None
    constant = None if value is None else constant_of(value)
    return constant is not None and bool(np.all(constant.numpy() > 0))


def _is_integer(value: ir.Value) -> bool:
    return value.dtype is not None and value.dtype.is_integer()


def _has_elements(value: ir.Value | None) -> bool:
    return value is None or (value.shape is not None and all(isinstance(s, int) and s > 0 for s in value.shape))


def _has_scan_outputs(loop: ir.Node) -> bool:
    return len(loop.outputs) > len(loop.inputs) - 2  # the trip count and the condition are not carried


def _is_true(node: ir.Node, at: int) -> bool:
    """Returns whether an input is left out, or a constant above zero."""
    if (value := node.inputs[at]) is None:
        return True
    constant = constant_of(value)
    return constant is not None and bool(np.all(constant.numpy() > 0))


def _dtype(value: ir.Value) -> str:
    if value.dtype is None or value.dtype == ir.DataType.UNDEFINED:
        return ""
    return "string" if value.dtype == ir.DataType.STRING else value.dtype.numpy().name


def _keeps_values(node: ir.Node) -> bool:
    """Returns whether an operator's int64 outputs hold only values that are among its inputs."""
    if node.op_type == "Cast":
        return _dtype(_input(node, 0)) in (*_SMALL_SOURCES, "int64")
    return node.op_type in KEEPERS


def _fits_where_constant(value: ir.Value) -> bool:
    constant = constant_of(value)
    return constant is None or _fits_int32(constant)


def _fits_int32(tensor: ir.TensorProtocol) -> bool:
    if tensor.dtype not in (ir.DataType.INT64, ir.DataType.UINT64, ir.DataType.UINT32) or tensor.size == 0:
        return True
    data = tensor.numpy()
    return bool(data.min() >= _INT32.min and data.max() <= _INT32.max)
