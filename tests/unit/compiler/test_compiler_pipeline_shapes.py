# SPDX-License-Identifier: Apache-2.0
"""The sizes that a pipeline fixes: what becomes of them beside the model's own and those of `--shape`."""

import pytest

from nndeploy.bundle.manifest import NamedType
from nndeploy.compiler.pipeline_shapes import shapes_of_pipeline
from nndeploy.errors import DataError, UsageError
from nndeploy.frontend.shape_texts import parse_shape_options
from nndeploy.values.types import SequenceType, TensorType

FREE = TensorType("float32", ("N", 3, "H", "W"))
MADE = (1, 3, 16, 32)


def fixed(types: dict, known: dict, *asked: str) -> dict[str, str]:
    inputs = [NamedType(name, kind) for name, kind in types.items()]
    found = shapes_of_pipeline(inputs, known, parse_shape_options(asked))
    return {name: str(spec) for name, spec in found.items()}


@pytest.mark.parametrize(("kind", "known", "found"), [
    (FREE, MADE, "1,?,16,32"), (FREE, (None, 3, 16, 32), "?,?,16,32"), (FREE, (None,) * 4, None),
    (TensorType("float32", (1, 3, 16, 32)), MADE, None), (TensorType("float32", (None,) * 4), MADE, "1,3,16,32"),
    (TensorType("float32", None), MADE, "1,3,16,32"), (TensorType("float32", ("N", "N")), (4, 4), "4,4"),
    (TensorType("float32", ("N", "N")), (4, 5), None), (TensorType("float32", ("N", "M")), (4, None), "4,?"),
    (SequenceType(FREE), MADE, None),
])  # fmt: skip
def test_open_sizes_become_those_of_the_pipeline(kind, known, found) -> None:
    assert fixed({"x": kind}, {"x": known}) == ({} if found is None else {"x": found})


@pytest.mark.parametrize(("asked", "found"), [
    (["x=1,3,16,32"], {}), (["x=1..8,3,16,32"], {}), (["x=?,?,?,?"], {}), (["x=N,3,H,W"], {}),
    (["H=8..32:8"], {"x": "1,?,?,32"}),
    (["H=16"], {"x": "1,?,?,32"}), (["y=1..8,2"], {"x": "?,?,16,32"}), (["y=?,2"], {"x": "?,?,16,32"}),
    (["z=7"], {"x": "1,?,16,32"}),
])  # fmt: skip
def test_what_is_asked_for_goes_before(asked, found) -> None:
    types = {"x": FREE, "y": TensorType("float32", ("N", 2)), "z": TensorType("float32", ("K",))}
    assert fixed(types, {"x": MADE}, *asked) == found


def test_a_symbol_of_two_sizes_stays_open() -> None:
    types = {"a": TensorType("int64", ("N", "L")), "b": TensorType("int64", ("N", "M"))}
    assert fixed(types, {"a": (1, 4), "b": (2, 4)}) == {"a": "?,4", "b": "?,4"}
    assert fixed(types, {"a": (1, 4), "b": (1, None)}) == {"a": "1,4", "b": "1,?"}


@pytest.mark.parametrize(("kind", "told"), [
    (TensorType("float32", ("N", 3, 64, "W")), "make axis 2 of the input 'x' 16, the model has 64"),
    (TensorType("float32", ("N", "H", "W")), r"make x\[1,3,16,32\], the model's input 'x' is float32\[N,H,W\]"),
])  # fmt: skip
def test_a_model_of_other_sizes_is_refused(kind, told) -> None:
    with pytest.raises(DataError, match=told):
        fixed({"x": kind}, {"x": MADE})


@pytest.mark.parametrize("asked", ["x=2,3,16,32", "x=2..8,3,?,?", "H=64", "H=8..56:24:8", "y=2,2"])
def test_sizes_that_leave_out_the_pipelines_own_are_refused(asked) -> None:
    with pytest.raises(UsageError, match="--shape says"):
        fixed({"x": FREE, "y": TensorType("float32", ("N", 2))}, {"x": MADE}, asked)
