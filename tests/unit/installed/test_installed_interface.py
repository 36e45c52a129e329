# SPDX-License-Identifier: Apache-2.0
"""Which bundles can be called as another is called."""

from typing import Any

import pytest

from nndeploy.bundle.manifest import Manifest, NamedType
from nndeploy.installed.interface import can_replace, interface_text
from nndeploy.values.types import DimRange, MapType, OptionalType, SequenceType, TensorType, ValueType


def manifest(inputs: dict[str, ValueType], outputs: dict[str, ValueType], **ranges: DimRange) -> Manifest:
    sides = (tuple(NamedType(name, kind) for name, kind in side.items()) for side in (inputs, outputs))
    return Manifest("m", "0" * 64, *sides, (), {**inputs, **outputs}, ranges=ranges)


def f32(*shape: Any) -> TensorType:
    return TensorType("float32", shape)


N18 = DimRange(1, 8, 4)
OLD = manifest({"x": f32("N", 3), "z": f32("M")}, {"y": f32("N", "2*N + M", "Q")}, N=N18, M=DimRange(2, 8, 2, 2))


def changed(inputs: Any = None, outputs: Any = None, **ranges: DimRange) -> Manifest:
    kept = {"N": N18, "M": DimRange(2, 8, 2, 2)} | ranges
    x = {"x": f32("N", 3), "z": f32("M")} if inputs is None else inputs
    return manifest(x, {"y": f32("N", "2*N + M", "Q")} if outputs is None else outputs, **kept)


@pytest.mark.parametrize("new", [
    OLD,
    changed(N=DimRange(1, 9, 1)),
    changed(M=DimRange(1, 9, 1)),
    manifest({"x": f32("b", 3), "z": f32("c")}, {"y": f32("b", "2*b + c", "d")}, b=N18, c=DimRange(2, 8, 8, 2)),
    manifest({"x": f32("N", 3), "z": f32("M")}, {"y": f32("N", "2*N + M", "Q")}),  # of any size
])  # fmt: skip
def test_what_takes_all_that_was_taken_can_stand_in(new: Manifest) -> None:
    assert can_replace(OLD, new)


@pytest.mark.parametrize("new", [
    changed({"z": f32("M"), "x": f32("N", 3)}), changed({"x": f32("N", 3)}), changed({"X": f32("N", 3), "z": f32("M")}),
    changed({"x": TensorType("float16", ("N", 3)), "z": f32("M")}), changed({"x": f32("N", 4), "z": f32("M")}),
    changed({"x": f32("N", 3), "z": f32("N")}), changed({"x": f32(1, 3), "z": f32("M")}),
    changed({"x": f32(None, 3), "z": f32("M")}), changed({"x": TensorType("float32", None), "z": f32("M")}),
    changed({"x": SequenceType(f32("N", 3)), "z": f32("M")}), changed({"x": OptionalType(f32("N", 3)), "z": f32("M")}),
    changed({"x": MapType("int64", f32("N", 3)), "z": f32("M")}), changed(outputs={}),
    changed(outputs={"y": f32("N", "3*N + M", "Q")}), changed(outputs={"y": f32("N", "2*M + N", "Q")}),
    changed(N=DimRange(2, 8, 4)), changed(N=DimRange(1, 7, 4)), changed(M=DimRange(2, 8, 2, 3)), changed(Q=N18),
])  # fmt: skip
def test_whatever_else_differs_is_another_interface(new: Manifest) -> None:
    assert not can_replace(OLD, new)
    assert can_replace(new, new)


def test_an_interface_is_one_line() -> None:
    told = "x float32[N,3], z float32[M] -> y float32[N,2*N + M,Q], N in 1..8, M in 2..8:2"
    assert interface_text(OLD) == told
    assert interface_text(manifest({}, {})) == "nothing -> nothing"
