# SPDX-License-Identifier: Apache-2.0
"""Models as text and messages as bytes, for the tests of the frontend."""

from collections.abc import Mapping
from typing import Any

import onnx
import onnx.parser
import pytest

HEADER = '<ir_version: 8, opset_import: ["" : 17]>\n'
OPSET_17 = b"\x42\x02\x10\x11"
"""ModelProto.opset_import of version 17 as it stands in a file."""


def model(body: str, header: str = HEADER) -> onnx.ModelProto:
    """Returns the model of a graph in ONNX's text form."""
    return onnx.parser.parse_model(header + body)


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    parts = []
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def block(field: int, *contents: bytes) -> bytes:
    content = b"".join(contents)
    return varint(field << 3 | 2) + varint(len(content)) + content


def model_bytes(*graph: bytes, ir_version: int = 8, after: bytes = OPSET_17) -> bytes:
    """Returns a serialised model whose graph has these fields."""
    return number(1, ir_version) + block(7, *graph) + after


def node(op_type: str, *attributes: bytes, domain: str = "") -> bytes:
    """Returns GraphProto.node."""
    return block(1, block(4, op_type.encode()), *attributes, block(7, domain.encode()) if domain else b"")


def tensor(*fields: bytes, name: str = "w") -> bytes:
    """Returns GraphProto.initializer."""
    return block(5, block(8, name.encode()), *fields)


def outputs_of(model: onnx.ModelProto, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what ONNX Runtime gives without its optimisations, by name."""
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(inputs)), strict=True))
