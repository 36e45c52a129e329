# SPDX-License-Identifier: Apache-2.0
"""The operator nndeploy.Pace of a library of delays, tried out before anything relies on it.

The library declares by hand what it needs of ONNX Runtime's interface, so the very one that is installed is asked: the
operator must leave values as they are and where they are, and pass its points in order.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from nndeploy.errors import one_line
from nndeploy.plugin.pacing import Pacer
from nndeploy.values.types import Array
from nndeploy_onnxruntime.library import inference_session, onnxruntime, session_options
from nndeploy_onnxruntime.model_fields import (
    GRAPH,
    GRAPH_INPUT,
    GRAPH_OUTPUT,
    INPUT,
    NODE,
    OP_TYPE,
    OPSET_IMPORT,
    OUTPUT,
    VALUE_NAME,
    VALUE_TYPE,
    message,
    varint_bytes,
)
from nndeploy_onnxruntime.pace_points import with_points

_TRIED: tuple[tuple[int, Array], ...] = (
    (1, np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)),
    (7, np.arange(4)),
    (1, np.array(0.5, np.float32)),
    (1, np.zeros((0, 3), np.float32)),
)
"""A number in TensorProto.DataType, and a value of that type."""
_IR_VERSION, _OPSET = 8, 17
_problems: dict[str, str] = {}
"""What was found of each library that was tried in this process."""


def operator_problem(pacer: Pacer) -> str:
    """Returns why the operator of the library of delays cannot be used in this process, "" where it can."""
    if pacer.path not in _problems:
        try:
            _problems[pacer.path] = _problem(pacer)
        except Exception as err:  # whatever it is, runs go on without this operator
            _problems[pacer.path] = one_line(f"the operator does not work: {type(err).__name__}: {err}")
    return _problems[pacer.path]


@contextmanager
def watched_copies(library: str, num_points: int) -> Iterator[Array]:
    """Yields how often each point copies on this thread."""
    watch = ctypes.CDLL(library).nnd_pace_watch
    watch.argtypes, watch.restype = (ctypes.c_void_p, ctypes.c_int64), None
    copies = np.zeros(num_points, np.int64)
    watch(copies.ctypes.data, num_points)
    try:
        yield copies
    finally:
        watch(None, 0)


def _problem(pacer: Pacer) -> str:
    options = session_options(1, [pacer.path])
    options.graph_optimization_level = onnxruntime().GraphOptimizationLevel.ORT_DISABLE_ALL
    model, names = with_points(_model())
    session = inference_session(model, options)
    with watched_copies(pacer.path, len(names)) as copies, pacer.timed(len(names)) as passed:
        results = session.run(None, {f"x{i}": value for i, (_, value) in enumerate(_TRIED)})
    if copies.any():
        return "the operator is given other memory than its input's"
    for (_, value), result in zip(_TRIED, results, strict=True):
        if result.shape != value.shape or not np.array_equal(result, -value):
            return f"the operator changes values of type {value.dtype.name} and shape {value.shape}"
    first, second = passed.order[::2], passed.order[1::2]
    if sorted(passed.order.tolist()) != list(range(len(names))) or not (first < second).all():
        return "points are not passed in order"
    return ""


def _model() -> bytes:
    """Returns a model that negates each of the values three times, behind which two points will stand."""
    graph = message(2, b"tried")
    for i, (element_type, _) in enumerate(_TRIED):
        x, a, b, y = (f"{name}{i}".encode() for name in "xaby")
        for source, result in ((x, a), (a, b), (b, y)):
            graph += message(NODE, message(INPUT, source) + message(OUTPUT, result) + message(OP_TYPE, b"Neg"))
        value_type = message(VALUE_TYPE, message(1, bytes((1 << 3, element_type))))
        graph += message(GRAPH_INPUT, message(VALUE_NAME, x) + value_type)
        graph += message(GRAPH_OUTPUT, message(VALUE_NAME, y) + value_type)
    return (
        bytes((1 << 3, _IR_VERSION))
        + message(OPSET_IMPORT, bytes((2 << 3,)) + varint_bytes(_OPSET))
        + message(GRAPH, graph)
    )
