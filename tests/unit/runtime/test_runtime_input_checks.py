# SPDX-License-Identifier: Apache-2.0
"""What a program accepts as inputs, and the one clear line for everything else."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nndeploy.bundle.manifest import NamedType
from nndeploy.errors import InputError
from nndeploy.runtime.input_checks import InputChecks
from nndeploy.values.types import DimRange, MapType, OptionalType, SequenceType, TensorType

X = NamedType("image", TensorType("float32", ("N", 3)))
Y = NamedType("mask", TensorType("int64", ("N", None)))
RANGES = {"N": DimRange(1, 8, 1)}


def checks(*inputs, ranges=RANGES):
    return InputChecks(inputs, ranges)


def f32(*shape):
    return np.zeros(shape, np.float32)


def test_values_that_fit_are_not_copied() -> None:
    value = f32(2, 3)
    assert checks(X)({"image": value})["image"] is value


@pytest.mark.parametrize("value", [
    f32(3, 2).T, f32(4, 6)[::2, ::2], f32(2, 3).astype(">f4"),
    np.frombuffer(b"\0" + bytes(24), np.uint8)[1:].view(np.float32).reshape(2, 3),
])  # fmt: skip
def test_odd_memory_is_made_plain(value) -> None:
    found = checks(X)({"image": value})["image"]
    assert found.flags.c_contiguous
    assert found.flags.aligned
    assert found.dtype == np.float32
    assert found.dtype.isnative
    np.testing.assert_array_equal(found, value)


@pytest.mark.parametrize("value", [[[1.0, 2, 3]], ((1, 2, 3),), [f32(3)]])
def test_python_numbers_become_arrays(value) -> None:
    found = checks(X)({"image": value})["image"]
    assert (found.dtype, found.shape) == (np.float32, (1, 3))


@pytest.mark.parametrize(("inputs", "message"), [
    ({"imag": f32(1, 3)}, r"no input is named 'imag' \(hint: did you mean 'image'\?\)"),
    ({"image": f32(1, 3), "x": 1}, r"no input is named 'x' \(hint: known: 'image'\)"),
    ({}, r"input 'image' is missing \(hint: the program needs 'image': float32\[N,3\]\)"),
    ({"image": np.zeros((1, 3))}, "input 'image' must be float32, got float64"),
    ({"image": [np.zeros(3)]}, "input 'image' must be float32, got float64"),
    ({"image": np.float64(1)}, "must be float32, got float64"),
    ({"image": np.array(["a"])}, "must be float32, got string"),
    ({"image": None}, "must be float32, got NoneType"),
    ({"image": f32(3)}, r"must have rank 2 \(float32\[N,3\]\), got \[3\]"),
    ({"image": f32(1, 4)}, r"must be float32\[N,3\], got \[1,4\]: axis 1 is 4 instead of 3"),
    ({"image": f32(9, 3)}, r"axis 0 \(N\) is 9, outside 1..8"),
    ({"image": f32(0, 3)}, r"axis 0 \(N\) is 0, outside 1..8"),
    ({"image": [[1.0], [1.0, 2.0]]}, "input 'image' is not a tensor"),
    ({"image": object()}, "must be float32, got object"),
    ({"image": np.array([["a"]], object)}, "must be float32, got str"),
])  # fmt: skip
def test_what_does_not_fit_is_refused_in_one_line(inputs, message) -> None:
    with pytest.raises(InputError, match=message) as caught:
        checks(X)(inputs)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 65


def test_a_symbol_is_the_same_everywhere() -> None:
    both = checks(X, Y)
    both({"image": f32(2, 3), "mask": np.zeros((2, 7), np.int64)})
    with pytest.raises(InputError, match=r"input 'mask': axis 0 \(N\) is 3, but it is 2 in input 'image'"):
        both({"image": f32(2, 3), "mask": np.zeros((3, 7), np.int64)})


@pytest.mark.parametrize(("size", "message"), [
    (230, r"input 'x': axis 2 \(H\) is 230, not 224 and a multiple of 32, as 224..1280:32 says \(hint: compile with"),
    (223, r"axis 2 \(H\) is 223, outside 224..1280:32"),
    (1312, r"axis 2 \(H\) is 1312, outside 224..1280:32"),
    (0, r"axis 2 \(H\) is 0, outside 224..1280:32"),
])  # fmt: skip
def test_a_size_must_be_on_a_step_of_its_range(size: int, message: str) -> None:
    stepped = checks(NamedType("x", TensorType("uint8", (1, 3, "H"))), ranges={"H": DimRange(224, 1280, 640, step=32)})
    for fits in (224, 256, 1280):
        stepped({"x": np.zeros((1, 3, fits), np.uint8)})
    with pytest.raises(InputError, match=message) as caught:
        stepped({"x": np.zeros((1, 3, size), np.uint8)})
    assert caught.value.exit_code == 65


names = st.sampled_from(["N", "M", "K"])
dims = st.lists(names | st.none() | st.integers(0, 4), min_size=1, max_size=3)
limits = st.builds(
    lambda low, step, count: DimRange(low, low + step * count, low, step),
    st.integers(0, 3),
    st.integers(1, 3),
    st.integers(0, 3),
)


@given(declared=st.lists(dims, min_size=1, max_size=3), ranges=st.dictionaries(names, limits), shapes=st.lists(
    st.lists(st.integers(0, 6), max_size=4), min_size=3, max_size=3
))  # fmt: skip
def test_only_shapes_that_fit_together_pass(declared, ranges, shapes) -> None:
    """What passes fits by the definition; of what does not the input and axis are named."""
    inputs = [NamedType(f"i{i}", TensorType("int8", tuple(dims))) for i, dims in enumerate(declared)]
    given_shapes = dict(zip((one.name for one in inputs), shapes, strict=False))
    sizes: dict[str, set[int]] = {}
    fits = all(len(given_shapes[one.name]) == len(one.type.shape) for one in inputs)
    for one in inputs if fits else ():
        for dim, size in zip(one.type.shape, given_shapes[one.name], strict=True):
            if isinstance(dim, str):
                sizes.setdefault(dim, set()).add(size)
            fits = fits and (dim is None or isinstance(dim, str) or dim == size)
    fits = fits and all(
        len(found) == 1 and (name not in ranges or min(found) in range(*_bounds(ranges[name])))
        for name, found in sizes.items()
    )
    values = {name: np.zeros(shape, np.int8) for name, shape in given_shapes.items()}
    if fits:
        assert checks(*inputs, ranges=ranges)(values).keys() == values.keys()
        return
    with pytest.raises(InputError, match=r"input 'i\d'.*(rank \d|axis \d is \d|axis \d \([NMK]\) is \d)") as caught:
        checks(*inputs, ranges=ranges)(values)
    assert "\n" not in str(caught.value)


def _bounds(limits: DimRange) -> tuple[int, int, int]:
    return limits.min, limits.max + 1, limits.step


def test_a_symbol_without_a_range_takes_any_size() -> None:
    checks(X, ranges={})({"image": f32(100, 3)})
    checks(X, ranges={})({"image": f32(0, 3)})


def test_an_unknown_shape_takes_any_rank() -> None:
    anything = checks(NamedType("x", TensorType("float32", None)))
    for value in (f32(), f32(1), f32(1, 2, 3)):
        assert anything({"x": value})["x"] is value


def test_scalars_keep_their_rank() -> None:
    scalar = checks(NamedType("x", TensorType("int64", ())))
    assert scalar({"x": 3})["x"].shape == ()
    assert scalar({"x": np.int64(3)})["x"].shape == ()
    with pytest.raises(InputError, match="rank 0"):
        scalar({"x": np.array([3])})


def test_small_element_types_are_taken_as_they_are() -> None:
    value = np.ones(3, ml_dtypes.bfloat16)
    small = checks(NamedType("x", TensorType("bfloat16", (3,))))
    assert small({"x": value})["x"] is value
    assert small({"x": [1, 2, 3]})["x"].dtype == ml_dtypes.bfloat16
    with pytest.raises(InputError, match="must be bfloat16, got float32"):
        small({"x": f32(3)})


@pytest.mark.parametrize("value", [
    np.array(["a", "b"], object), np.array(["a", "b"]), np.array([b"a", b"b"]), np.array([b"a", "b"], object),
    np.array(["a", "x", "b"], object)[::2], ["a", "b"], [np.str_("a"), "b"],
])  # fmt: skip
def test_strings_become_object_arrays(value) -> None:
    found = checks(NamedType("x", TensorType("string", (2,))))({"x": value})["x"]
    assert found.dtype == object
    assert found.tolist() == ["a", "b"]
    assert found.flags.c_contiguous


@pytest.mark.parametrize("value", [np.array([1, "a"], object), np.array([1, 2]), [1, 2], np.array([b"\xff", b"a"])])
def test_other_things_are_no_strings(value) -> None:
    with pytest.raises(InputError, match=r"must be string|not UTF-8"):
        checks(NamedType("x", TensorType("string", (2,))))({"x": value})


def test_numbers_that_are_no_characters_are_no_strings() -> None:
    text = checks(NamedType("x", TensorType("string", (None,))))
    wrong = np.array([0x110000], np.uint32).view("<U1")
    for _ in "ab":  # the second time it is compared with a call that passed
        with pytest.raises(InputError, match="input 'x' contains numbers that are not Unicode characters"):
            text({"x": wrong})
        assert text({"x": np.array(["a"])})["x"].tolist() == ["a"]


def test_nothing_is_missing_after_calls_that_passed() -> None:
    both = checks(X, NamedType("y", TensorType("float32", (1,))))
    for _ in "ab":
        for wrong in ({}, {"image": f32(1, 3)}, {"image": f32(1, 3), "z": f32(1)}):
            with pytest.raises(InputError, match=r"is missing|no input is named"):
                both(wrong)
        both({"image": f32(1, 3), "y": f32(1)})


def test_text_is_looked_at_in_every_call() -> None:
    checks = InputChecks(
        [NamedType("text", TensorType("string", (None,))), NamedType("x", TensorType("float32", (1,)))], {}
    )
    number = np.zeros(1, np.float32)
    for text in (np.array(["a", "b"], object), np.array(["c", "d"])):
        assert checks({"text": text, "x": number})["text"].tolist() == text.tolist()
    assert checks({"text": np.array([b"a", b"b"], object), "x": number})["text"].tolist() == ["a", "b"]
    for wrong in (np.array(["a", 1], object), np.zeros(2, np.float32)):
        with pytest.raises(InputError, match="must be string"):
            checks({"text": wrong, "x": number})


def test_optionals_may_be_none_or_left_out() -> None:
    maybe = checks(X, NamedType("more", OptionalType(TensorType("float32", (2,)))))
    assert maybe({"image": f32(1, 3)})["more"] is None
    assert maybe({"image": f32(1, 3), "more": None})["more"] is None
    assert maybe({"image": f32(1, 3), "more": [1, 2]})["more"].tolist() == [1, 2]
    with pytest.raises(InputError, match="no input is named 'moer'"):
        maybe({"image": f32(1, 3), "moer": None})


def test_sequences_are_lists_of_values_that_fit() -> None:
    many = checks(NamedType("x", SequenceType(TensorType("float32", ("M",)))))
    found = many({"x": (f32(2), [1, 2, 3])})["x"]
    assert [item.shape for item in found] == [(2,), (3,)]
    assert many({"x": []})["x"] == []
    with pytest.raises(InputError, match="input 'x' must be a list, not ndarray"):
        many({"x": f32(2)})
    with pytest.raises(InputError, match="an element of input 'x' must be float32, got int64"):
        many({"x": [np.zeros(2, np.int64)]})


def test_maps_have_plain_keys_and_numbers() -> None:
    table = checks(NamedType("x", MapType("int64", TensorType("float32", ()))))
    assert table({"x": {np.int64(1): np.float32(0.5), 2: 1}})["x"] == {1: 0.5, 2: 1.0}
    with pytest.raises(InputError, match="a key of input 'x' must be int64, not 'a'"):
        table({"x": {"a": 1}})
    with pytest.raises(InputError, match="must be a dict"):
        table({"x": [1]})
