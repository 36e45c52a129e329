# SPDX-License-Identifier: Apache-2.0
"""Samples to check with: of the declared types, the same every time, sensible where names and consumers tell."""

from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from nndeploy.bundle.manifest import NamedType
from nndeploy.checking.made_up_values import MAX_ELEMENTS
from nndeploy.checking.samples import (
    generated_samples,
    given_samples,
    samples_from_folder,
)
from nndeploy.errors import InputError, MissingInputError
from nndeploy.values.types import (
    DTYPES,
    DimRange,
    MapType,
    OptionalType,
    SequenceType,
    TensorType,
    dtype_name,
    shapes_in_short,
    shapes_text,
)


def model_of(*inputs: NamedType) -> ir.Model:
    """Returns a model without nodes that has the tensors among some inputs."""
    values = [
        ir.Value(name=one.name, shape=ir.Shape(one.type.shape), type=ir.TensorType(ir.DataType.FLOAT))
        for one in inputs
        if isinstance(one.type, TensorType) and one.type.shape is not None
    ]
    return ir.Model(ir.Graph(values, [], nodes=[], opset_imports={"": 18}, name="g"), ir_version=8)


def first(*inputs: NamedType, sizes: dict[str, int] | None = None, seed: int = 0):  # type: ignore[no-untyped-def]
    return next(generated_samples(model_of(*inputs), inputs, sizes or {}, seed))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_element_type_is_generated_as_declared(dtype: str) -> None:
    value = first(NamedType("x", TensorType(dtype, (2, 3))))["x"]
    assert (dtype_name(value.dtype), value.shape) == (dtype, (2, 3))


def test_sequences_optionals_and_maps_are_generated() -> None:
    tensor = TensorType("float32", (2,))
    sample = first(
        NamedType("s", SequenceType(tensor)),
        NamedType("o", OptionalType(tensor)),
        NamedType("m", MapType("int64", tensor)),
    )
    assert [element.shape for element in sample["s"]] == [(2,), (2,)]
    assert sample["o"].shape == (2,)
    assert list(sample["m"]) == [1]


def test_the_same_model_gives_the_same_samples_and_another_seed_others() -> None:
    x = NamedType("x", TensorType("float32", (5,)))
    np.testing.assert_array_equal(first(x)["x"], first(x)["x"])
    assert not np.array_equal(first(x)["x"], first(x, seed=1)["x"])


def test_a_symbol_has_one_size_everywhere_and_the_one_that_was_chosen() -> None:
    x, y = NamedType("x", TensorType("float32", ("N", 3))), NamedType("y", TensorType("float32", (2, "N")))
    sample = first(x, y, sizes={"N": 6})
    assert (sample["x"].shape, sample["y"].shape) == ((6, 3), (2, 6))
    assert shapes_text(sample) == "x[6,3] y[2,6]"
    free = first(x, y)
    assert free["x"].shape[0] == free["y"].shape[1]


def test_later_attempts_try_other_sizes_and_none_is_absurd() -> None:
    x = NamedType("x", TensorType("float32", ("N", 3, "H", "W")))
    shapes = {sample["x"].shape for sample in generated_samples(model_of(x), [x], {}, 0)}
    assert (1, 3, 224, 224) in shapes
    assert len(shapes) > 3
    huge = NamedType("x", TensorType("float32", (MAX_ELEMENTS, 2)))
    assert list(generated_samples(model_of(huge), [huge], {}, 0)) == []


def test_positions_stand_behind_the_past_and_lengths_are_those_of_the_inputs() -> None:
    past = NamedType("past_key", TensorType("float32", ("B", 2, "past_length", 4)))
    ids = NamedType("ids", TensorType("int64", ("B", "length")))
    positions = NamedType("position_ids", TensorType("int64", ("B", "length")))
    lengths = NamedType("lengths", TensorType("int64", ("B",)))
    sample = first(past, ids, positions, lengths, sizes={"past_length": 5, "length": 3})
    assert sample["position_ids"].tolist() == [[5, 6, 7]]
    assert sample["lengths"].tolist() == [3]


def test_a_mask_lets_everything_through() -> None:
    sample = first(
        NamedType("attention_mask", TensorType("int64", (20,))), NamedType("mask", TensorType("bool", (20,)))
    )
    assert sample["attention_mask"].tolist() == [1] * 20
    assert sample["mask"].all()


@pytest.mark.parametrize(("name", "shape", "is_picture"), [
    ("images", (1, 3, 32, 32), True), ("input_image", (32, 32, 3), True), ("img", (1, 32, 32), True),
    ("image_embeds", (4, 512), False), ("image", (1, 50, 512, 512), False), ("pixel_values", (1, 3, 32, 32), False),
])  # fmt: skip
def test_the_pixels_of_a_picture_are_from_0_to_1(name: str, shape: tuple[int, ...], is_picture: bool) -> None:
    value = first(NamedType(name, TensorType("float32", shape)))[name]
    assert (value.min() >= 0 and value.max() <= 1) == is_picture


def test_given_samples_are_checked_as_the_program_will_check_its_inputs() -> None:
    inputs = [NamedType("text", TensorType("string", (1,))), NamedType("maybe", OptionalType(TensorType("bool", ())))]
    (sample,) = given_samples([{"text": np.array(["a"])}], inputs, {})
    assert sample["text"].dtype == object
    assert sample["maybe"] is None
    with pytest.raises(InputError, match="did you mean 'text'"):
        given_samples([{"texd": np.array(["a"])}], inputs, {})
    with pytest.raises(InputError, match="sample 1: input 'text' is missing"):
        given_samples([{"text": np.array(["a"])}, {}], inputs, {})
    image = [NamedType("x", TensorType("float32", ("N", 4)))]
    with pytest.raises(InputError, match=r"axis 0 \(N\) is 9, outside 1..8"):
        given_samples([{"x": np.zeros((9, 4), np.float32)}], image, {"N": DimRange(1, 8, 1)})
    with pytest.raises(InputError, match="axis 1 is 3 instead of 4"):
        given_samples([{"x": np.zeros((1, 3), np.float32)}], image, {})


def test_axes_are_all_different_and_steps_not_0() -> None:
    signature = "float[A,B] x, int64[2] s, int64[2] e, int64[2] ax, int64[2] st"
    graph = f"g ({signature}) => (float[C,D] y) {{ y = Slice(x, s, e, ax, st) }}"
    model = ir.from_onnx_text(f'<ir_version: 10, opset_import: ["": 13]> {graph}')
    inputs = [NamedType(name, TensorType("int64", (2,))) for name in ("ax", "st")]
    for sample in generated_samples(model, inputs, {}, 0):
        assert sorted(sample["ax"]) == [0, 1]
        assert (sample["st"] > 0).all()


def test_a_folder_of_npz_files_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    for name, value in (("b", 2.0), ("a", 1.0)):
        np.savez(tmp_path / f"{name}.npz", x=np.array([value]))
    assert [sample["x"].tolist() for sample in samples_from_folder(tmp_path)] == [[1.0], [2.0]]
    assert [sample["x"].tolist() for sample in samples_from_folder(tmp_path / "b.npz")] == [[2.0]]
    with pytest.raises(MissingInputError, match="no sample"):
        samples_from_folder(tmp_path / "nowhere")
    np.savez(tmp_path / "c.npz", x=np.array([{}], dtype=object))
    with pytest.raises(InputError, match=r"c\.npz"):
        samples_from_folder(tmp_path)


def test_shapes_of_names_that_differ_by_numbers_are_told_once() -> None:
    past = {f"past.{layer}.{kind}": np.zeros((1, 2, 3)) for layer in range(3) for kind in ("key", "value")}
    sample = {"x1": np.zeros((4,)), "x2": np.zeros((5,)), **past}
    assert shapes_in_short(sample) == "x1[4] x2[5] past.*.key[1,2,3] past.*.value[1,2,3]"
