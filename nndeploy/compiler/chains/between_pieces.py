# SPDX-License-Identifier: Apache-2.0
"""The values that pass between the pieces of a chain, as the reference gives them, and their types.

Comes in: pieces in running order. Goes out: for each sample every value that enters or leaves a piece. Law: they are
the reference's own, whatever the backends do, so that a piece is judged by itself.
"""

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from nndeploy.compiler.chains.chain_plan import Piece
from nndeploy.compiler.chains.chain_setting import Setting
from nndeploy.errors import BuildRefusedError, ModelError, one_line
from nndeploy.graph.map_types import map_type_of
from nndeploy.graph.onnx_types import value_type_from_onnx
from nndeploy.values.types import Value, ValueType, type_of_value

NO_SAMPLE = "no sample that the reference can run"


def values_between_pieces(setting: Setting, pieces: Sequence[Piece]) -> tuple[tuple[Mapping[str, Value], ...], str]:
    """Returns for each sample every value that enters or leaves a piece; none, and why, where they are not known."""
    if not setting.samples:
        return (), NO_SAMPLE
    whole = setting.whole_of(pieces[0].outputs) if len(pieces) == 1 else None
    if whole is not None:
        return tuple({**given, **made} for given, made in zip(setting.samples, whole.outputs, strict=True)), ""
    setting.events("reference", "values between submodels")
    try:
        return tuple(setting.reference.along_chain([piece.model for piece in pieces], setting.samples)), ""
    except BuildRefusedError as err:
        return (), one_line(str(err))


def types_between_pieces(pieces: Sequence[Piece], boundaries: Sequence[Mapping[str, Value]]) -> dict[str, ValueType]:
    """Returns the type of every value that enters or leaves a piece: the inferred one, else that of its value."""
    types: dict[str, ValueType] = {}
    for piece in pieces:
        for value in (*piece.model.graph.inputs, *piece.model.graph.outputs):
            name = value.name or ""
            known = _inferred_type(value)
            if known is None and boundaries and boundaries[0].get(name) is not None:
                known = type_of_value(boundaries[0][name])
            if known is not None:
                types[name] = known
    return types


def _inferred_type(value: ir.Value) -> ValueType | None:
    if value.type is None:
        return map_type_of(value)
    try:
        return value_type_from_onnx(ir.to_proto(value).type)
    except ModelError:
        return None  # inference left it open; the reference's value tells
