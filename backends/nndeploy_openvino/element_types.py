# SPDX-License-Identifier: Apache-2.0
"""Element types that can cross into OpenVINO's Python interface, and how.

numpy's own cross as they are. bfloat16 crosses as raw memory: OpenVINO's arrays of it say float16, with the right
bits. Text and complex numbers do not cross, nor do types of 8 bits and less beyond the integers: OpenVINO turns what
is too large for a float8 into NaN, where ONNX takes the largest value.
"""

from typing import Any

import numpy as np

OPENVINO_TYPES = {
    "float16": "f16", "float32": "f32", "float64": "f64", "bfloat16": "bf16", "int8": "i8", "int16": "i16",
    "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "bool": "boolean",
}  # fmt: skip
"""Our name -> OpenVINO's."""

RAW_TYPES = {"bfloat16": np.uint16}
"""Our name -> what the same bits are for numpy."""


def raw_type(openvino_name: str) -> str:
    """Returns our name for OpenVINO's type if arrays of it must cross as raw memory, else ""."""
    return next((name for name in RAW_TYPES if OPENVINO_TYPES[name] == openvino_name), "")


def crosses(dtype: "np.dtype[Any]") -> bool:
    """Returns whether tensors of an element type can cross."""
    return dtype.name in OPENVINO_TYPES
