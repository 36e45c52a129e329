# SPDX-License-Identifier: Apache-2.0
"""Names of element types: TensorRT's and ours."""

NAME_OF: dict[str, str] = {
    "FLOAT": "float32",
    "HALF": "float16",
    "BF16": "bfloat16",
    "INT8": "int8",
    "INT32": "int32",
    "INT64": "int64",
    "BOOL": "bool",
    "UINT8": "uint8",
    "FP8": "float8_e4m3fn",
    "E8M0": "float8_e8m0fnu",
    "INT4": "int4",
    "FP4": "float4_e2m1fn",
}
"""TensorRT's DataType -> the name in `nndeploy.values.types.DTYPES`."""

PACKED = frozenset({"int4", "float4_e2m1fn"})
"""Two elements a byte in TensorRT, one a byte in our arrays; so they do not cross a border."""


def dtype_name(tensorrt_dtype: object) -> str:
    """Returns our name of a TensorRT DataType, or its own in lower case where we have none."""
    name = str(getattr(tensorrt_dtype, "name", tensorrt_dtype))
    return NAME_OF.get(name, name.lower())
