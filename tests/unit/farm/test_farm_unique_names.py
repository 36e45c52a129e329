# SPDX-License-Identifier: Apache-2.0
"""Names of models and boxes: the stem, with as many folders as it takes; two files never have one name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nndeploy.errors import DataError
from nndeploy.farm.unique_names import unique_names


@pytest.mark.parametrize(("files", "names"), [
    (["a/x.onnx", "b/y.onnx"], ["x", "y"]),
    (["a/x.onnx", "b/x.onnx", "b/y.onnx"], ["a-x", "b-x", "y"]),
    (["p/a/x.onnx", "q/a/x.onnx", "x.onnx"], ["p-a-x", "q-a-x", "x"]),
    (["a/x.onnx", "b/x.onnx", "a-x.onnx"], ["b-x", "a-x", None]),
    (["../m/x.v2.onnx"], ["x.v2"]),
])  # fmt: skip
def test_folders_are_named_where_stems_are_alike(files: list[str], names: list[str | None]) -> None:
    if None in names:
        with pytest.raises(DataError, match=r"two models are called 'a-x': 'a-x.onnx' and 'a/x.onnx'"):
            unique_names(files, "models", "fleet.toml")
    else:
        assert unique_names(files, "models", "fleet.toml") == dict(zip(files, names, strict=True))


def test_a_name_that_is_taken_is_left_to_its_owner() -> None:
    assert unique_names(["boxes/host.toml"], "targets", "", frozenset({"host"})) == {"boxes/host.toml": "boxes-host"}
    with pytest.raises(DataError, match=r"two targets are called 'host': 'host.toml' and another"):
        unique_names(["host.toml"], "targets", "", frozenset({"host"}))


@pytest.mark.parametrize("file", ["a\nb.onnx", "a\x1b[31m.onnx", "\udcff.onnx"])
def test_what_cannot_be_printed_is_no_name(file: str) -> None:
    with pytest.raises(DataError, match="cannot be printed") as caught:
        unique_names([file], "models", "fleet.toml")
    assert str(caught.value).isprintable()


PATHS = st.lists(st.sampled_from(["a", "b", "a-b", "c"]), min_size=1, max_size=4).map(lambda parts: "/".join(parts))


@given(files=st.lists(PATHS, unique=True, max_size=8), seed=st.randoms())
def test_names_are_unique_in_any_order_or_two_files_are_named(files: list[str], seed) -> None:
    shuffled = sorted(files, key=lambda _: seed.random())
    try:
        names = unique_names(files, "models", "")
    except DataError as err:
        with pytest.raises(DataError) as caught:
            unique_names(shuffled, "models", "")
        assert caught.value.what == err.what  # noqa: PT017 - the same in another order
        return
    assert len(set(names.values())) == len(files)
    assert unique_names(shuffled, "models", "") == names
