# SPDX-License-Identifier: Apache-2.0
"""The types of values that onnx_ir has none for: maps, and what holds maps.

They stand in the value's own metadata, which clones and messages keep.
"""

import json

import onnx_ir as ir

from nndeploy.values.types import ValueType, type_from_json, type_to_json

KEY = "nndeploy.value_type"


def say_map_type(value: ir.Value, value_type: ValueType) -> None:
    """Says what the type of a value is."""
    value.metadata_props[KEY] = json.dumps(type_to_json(value_type))


def map_type_of(value: ir.Value) -> ValueType | None:
    """Returns what was said of a value; None where nothing was."""
    said = value.metadata_props.get(KEY)
    return None if said is None else type_from_json(json.loads(said))


def holds_map(value: ir.Value) -> bool:
    """Whether a value is a map or holds maps."""
    return KEY in value.metadata_props
