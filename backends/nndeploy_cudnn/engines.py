# SPDX-License-Identifier: Apache-2.0
"""Graph -> execution plan, in the child process: descriptors are made, cuDNN's heuristics asked, one engine taken.

    tensors, operations  ->  operation graph  ->  engine configurations, best first  ->  the first that is allowed
                                                                                         and that can be finalised

Not allowed is what would change the numbers behind the user's back: engines that are not deterministic, round their
inputs or sum in less than float32, or use Winograd's large tiles; and for exact graphs tensor cores.

Source: cudnn_graph_v9.h of cuDNN 9.28, whose comments say for each descriptor which attributes it has.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nndeploy.errors import one_line
from nndeploy_cudnn.graph import Graph, GraphOperation, GraphTensor, Scalar
from nndeploy_cudnn.library import (
    EXECUTION_PLAN,
    PLAN_DEVICE,
    PLAN_ENGINE_CONFIG,
    PLAN_JSON,
    PLAN_WORKSPACE_BYTES,
    CudnnError,
    Descriptor,
    Library,
)
from nndeploy_cudnn.views import Dims

DATA_TYPES = {"float32": 0, "float16": 2, "bfloat16": 9}
POINTWISE_MODES = {
    "add": 0, "mul": 1, "min": 2, "max": 3, "sqrt": 4, "div": 6, "pow": 8, "sub": 9, "abs": 10, "ceil": 11, "cos": 12,
    "exp": 13, "floor": 14, "log": 15, "neg": 16, "rsqrt": 17, "sin": 18, "tan": 19, "erf": 20, "identity": 21,
    "reciprocal": 22, "relu": 100, "tanh": 101, "sigmoid": 102, "elu": 103, "gelu": 104, "gelu_tanh": 107,
}  # fmt: skip
"""Source: cudnnPointwiseMode_t."""
POINTWISE_ATTRIBUTES = {"lower_slope": 5, "elu_alpha": 6}
POOL_MODES = {"average-with-padding": 2, "max": 3, "average": 4}
NORM_MODES = {"layer": 0, "instance": 1}
ZERO_PADDING, NEGATIVE_INFINITY_PADDING = 0, 1
CROSS_CORRELATION, PROPAGATE_NAN, INFERENCE = 1, 1, 0

HEURISTIC_MODES = {"heuristic": 3, "fallback": 2}
MAX_CONFIGS = 64
NOTE_TENSOR_CORE = 0
WHY_FORBIDDEN = {
    NOTE_TENSOR_CORE: "rounds to TF32",
    1: "rounds its inputs",
    2: "sums in reduced precision",
    4: "is not deterministic",
    7: "uses Winograd with large tiles",
    8: "uses Winograd with large tiles",
}
"""Source: cudnnBackendNumericalNote_t; 7 and 8 are tiles of 6x6 and 13x13."""
BEHAVIOR_RUNTIME_COMPILATION = 0
MAX_NOTES = 10
MAX_WORKSPACE_BYTES = 1 << 30
_REASON = re.compile(r"(CUDNN_STATUS_\w+); Reason: (.+?)(?= Warning: | Error: | \{|$)")

(
    _POINTWISE, _CONVOLUTION, _ENGINE, _ENGINE_CONFIG, _HEURISTICS, _CONVOLUTION_FORWARD, _CONVOLUTION_BACKWARD_DATA,
    _POINTWISE_OPERATION, _OPERATION_GRAPH, _TENSOR, _MATMUL, _MATMUL_OPERATION, _RESAMPLE, _RESAMPLE_FORWARD,
    _NORM_FORWARD,
) = (0, 1, 2, 3, 4, 10, 12, 13, 15, 17, 18, 19, 24, 25, 29)  # fmt: skip


@dataclass(frozen=True, slots=True)
class BuiltPlan:
    """A plan's text, the workspace that it needs, and whether it holds code that was compiled just now."""

    text: str
    workspace_bytes: int
    is_compiled: bool


Tensors = Mapping[int, Descriptor]


def build_plan(library: Library, device: Descriptor, graph: Graph, modes: tuple[str, ...]) -> BuiltPlan:
    """Returns the best allowed plan of `graph` for `device`; `modes` are keys of HEURISTIC_MODES, tried in order.

    Raises:
        CudnnError: there is none; the text says what cuDNN said.
    """
    operation_graph = _operation_graph(library, graph)
    forbidden = set(WHY_FORBIDDEN) - (set() if graph.exact else {NOTE_TENSOR_CORE})
    said = ""
    for mode in modes:
        for config in _configs(library, operation_graph, device, mode):
            try:
                found, why = _plan_of(library, device, config, forbidden)
            except CudnnError as err:
                said = str(err)
                continue
            if found is not None:
                return found
            said = said or why
        said = said or library.last_message()
    raise CudnnError(in_short(said) or "no engine takes it")


def in_short(said: str) -> str:
    """Returns cuDNN's log of one question as its innermost reason: it names every check of every engine, twice over."""
    found = _REASON.findall(one_line(said))
    if not found:
        return one_line(said)
    checks = [check for status, check in found[:2] if status == found[0][0]]
    return f"{found[0][0]}: {' in '.join(checks)}"


def _configs(library: Library, graph: Descriptor, device: Descriptor, mode: str) -> list[Descriptor]:
    heuristics = Descriptor(library, _HEURISTICS)
    heuristics.set(201, "descriptor", [graph]).set(200, "heuristic", HEURISTIC_MODES[mode])
    try:
        return heuristics.set(204, "descriptor", [device]).finalized().get_descriptors(202, _ENGINE_CONFIG, MAX_CONFIGS)
    except CudnnError:
        return []


def _plan_of(
    library: Library, device: Descriptor, config: Descriptor, forbidden: set[int]
) -> tuple[BuiltPlan | None, str]:
    engine = config.get_descriptors(300, _ENGINE, 1)[0]
    notes = set(engine.get(1303, "numerical note", MAX_NOTES))
    if bad := sorted(notes & forbidden):
        return None, f"each engine that it has {WHY_FORBIDDEN[bad[0]]}"
    plan = Descriptor(library, EXECUTION_PLAN).set(PLAN_DEVICE, "descriptor", [device])
    plan.set(PLAN_ENGINE_CONFIG, "descriptor", [config]).finalized()
    workspace = int(plan.get(PLAN_WORKSPACE_BYTES, "int64", 1)[0])
    if workspace > MAX_WORKSPACE_BYTES:
        return None, f"it needs {workspace} bytes of workspace"
    is_compiled = BEHAVIOR_RUNTIME_COMPILATION in engine.get(1305, "behavior note", MAX_NOTES)
    return BuiltPlan(plan.get_text(PLAN_JSON).decode(), workspace, is_compiled), ""


def _operation_graph(library: Library, graph: Graph) -> Descriptor:
    tensors = {tensor.uid: _tensor(library, tensor) for tensor in graph.tensors}
    operations = [BUILDERS[operation.kind](library, tensors, operation) for operation in graph.operations]
    return Descriptor(library, _OPERATION_GRAPH).set(801, "descriptor", operations).finalized()


def _tensor(library: Library, tensor: GraphTensor) -> Descriptor:
    made = Descriptor(library, _TENSOR).set(906, "int64", tensor.uid).set(901, "data type", DATA_TYPES[tensor.dtype])
    made.set(902, "int64", tensor.dims).set(903, "int64", tensor.strides).set(900, "int64", tensor.alignment)
    return made.set(907, "bool", tensor.virtual).set(908, "bool", tensor.by_value).finalized()


def _pointwise(library: Library, tensors: Tensors, operation: GraphOperation) -> Descriptor:
    ports, attributes = dict(operation.ports), dict(operation.attributes)
    how = Descriptor(library, _POINTWISE).set(0, "pointwise mode", POINTWISE_MODES[_text(attributes["mode"])])
    how.set(1, "data type", DATA_TYPES["float32"])
    for name, number in POINTWISE_ATTRIBUTES.items():
        if name in attributes:
            how.set(number, "double", attributes[name])
    made = Descriptor(library, _POINTWISE_OPERATION).set(750, "descriptor", [how.finalized()])
    for port, number in (("x", 751), ("b", 752), ("y", 753)):
        if port in ports:
            made.set(number, "descriptor", [tensors[ports[port]]])
    return made.finalized()


def _convolution_kind(library: Library, operation: GraphOperation) -> Descriptor:
    attributes = dict(operation.attributes)
    how = Descriptor(library, _CONVOLUTION).set(100, "data type", DATA_TYPES["float32"])
    how.set(101, "convolution mode", CROSS_CORRELATION).set(106, "int64", len(_dims(attributes["before"])))
    for name, number in (("dilations", 102), ("strides", 103), ("after", 104), ("before", 105)):
        how.set(number, "int64", attributes[name])
    return how.finalized()


def _convolution(library: Library, tensors: Tensors, operation: GraphOperation) -> Descriptor:
    ports, alpha = dict(operation.ports), dict(operation.attributes)["alpha"]
    made = Descriptor(library, _CONVOLUTION_FORWARD).set(700, "double", alpha).set(701, "double", 0.0)
    made.set(702, "descriptor", [_convolution_kind(library, operation)])
    for port, number in (("w", 703), ("x", 704), ("y", 705)):
        made.set(number, "descriptor", [tensors[ports[port]]])
    return made.finalized()


def _transposed_convolution(library: Library, tensors: Tensors, operation: GraphOperation) -> Descriptor:
    ports = dict(operation.ports)
    made = Descriptor(library, _CONVOLUTION_BACKWARD_DATA).set(706, "double", 1.0).set(707, "double", 0.0)
    made.set(708, "descriptor", [_convolution_kind(library, operation)])
    for port, number in (("w", 709), ("y", 710), ("x", 711)):
        made.set(number, "descriptor", [tensors[ports[port]]])
    return made.finalized()


def _matmul(library: Library, tensors: Tensors, operation: GraphOperation) -> Descriptor:
    ports = dict(operation.ports)
    how = Descriptor(library, _MATMUL).set(1500, "data type", DATA_TYPES["float32"]).finalized()
    made = Descriptor(library, _MATMUL_OPERATION).set(1523, "descriptor", [how])
    for port, number in (("x", 1520), ("w", 1521), ("y", 1522)):
        made.set(number, "descriptor", [tensors[ports[port]]])
    return made.finalized()


def _pool(library: Library, tensors: Tensors, operation: GraphOperation) -> Descriptor:
    ports, attributes = dict(operation.ports), dict(operation.attributes)
    mode = _text(attributes["mode"])
    how = Descriptor(library, _RESAMPLE).set(1700, "resample mode", POOL_MODES[mode])
    how.set(1701, "data type", DATA_TYPES["float32"]).set(1707, "nan", PROPAGATE_NAN)
    how.set(1708, "padding mode", NEGATIVE_INFINITY_PADDING if mode == "max" else ZERO_PADDING)
    how.set(1702, "int64", len(_dims(attributes["window"])))
    for name, number in (("after", 1703), ("before", 1704), ("strides", 1705), ("window", 1706)):
        how.set(number, "int64", attributes[name])
    made = Descriptor(library, _RESAMPLE_FORWARD).set(1716, "descriptor", [how.finalized()])
    made.set(1713, "double", 1.0).set(1714, "double", 0.0)
    for port, number in (("x", 1710), ("y", 1711)):
        made.set(number, "descriptor", [tensors[ports[port]]])
    return made.finalized()


def _normalization(library: Library, tensors: Tensors, operation: GraphOperation) -> Descriptor:
    ports, mode = dict(operation.ports), _text(dict(operation.attributes)["mode"])
    made = Descriptor(library, _NORM_FORWARD).set(2000, "norm mode", NORM_MODES[mode])
    made.set(2001, "norm phase", INFERENCE)
    for port, number in (("x", 2002), ("scale", 2005), ("bias", 2006), ("epsilon", 2007), ("y", 2013)):
        made.set(number, "descriptor", [tensors[ports[port]]])
    return made.finalized()


def _text(value: Scalar | Dims) -> str:
    assert isinstance(value, str)
    return value


def _dims(value: Scalar | Dims) -> Dims:
    assert isinstance(value, tuple)
    return value


BUILDERS: dict[str, Callable[[Library, Tensors, GraphOperation], Any]] = {
    "pointwise": _pointwise,
    "convolution": _convolution,
    "transposed convolution": _transposed_convolution,
    "matmul": _matmul,
    "pool": _pool,
    "normalization": _normalization,
}
