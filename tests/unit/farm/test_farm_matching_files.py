# SPDX-License-Identifier: Apache-2.0
"""Globs of a fleet file find the files that a shell would, whatever their order, and never go in circles."""

from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nndeploy.errors import DataError, MissingInputError, NndeployError
from nndeploy.farm.matching_files import matching_files


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("[odd] root") / "fleet"
    for name in ("a.onnx", "b/c.onnx", "b/c-int4.onnx", "b/d/e.onnx", "b/.hidden/f.onnx", ".g.onnx", "b/notes.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    (root / "b" / "d" / "round").symlink_to(root)
    (root / "link.onnx").symlink_to(root / "b" / "c.onnx")
    (root / "broken.onnx").symlink_to(root / "nowhere")
    return root


def found(tree: Path, *globs: str) -> list[str]:
    return [str(Path(path).relative_to(tree)) for path in matching_files(tree, globs)]


@pytest.mark.parametrize(("globs", "files"), [
    (["a.onnx"], ["a.onnx"]), (["*.onnx"], ["a.onnx", "link.onnx"]),
    (["**/*.onnx"], ["a.onnx", "b/c-int4.onnx", "b/c.onnx", "b/d/e.onnx", "link.onnx"]),
    (["b/**"], ["b/c-int4.onnx", "b/c.onnx", "b/d/e.onnx", "b/notes.txt"]), (["**/**/d/**/e.onnx"], ["b/d/e.onnx"]),
    (["**/*.onnx", "!**/*-int4.onnx", "!b/d/**"], ["a.onnx", "b/c.onnx", "link.onnx"]),
    (["b/?.onnx", "b/[c]*.onnx"], ["b/c-int4.onnx", "b/c.onnx"]), ([".*.onnx"], [".g.onnx"]),
    (["b/.hidden/*"], ["b/.hidden/f.onnx"]), (["b/d/round/a.onnx"], ["b/d/round/a.onnx"]),
    (["a.onnx", "!" + "**/" * 60 + "z"], ["a.onnx"]), (["b/../a.onnx", "./a.onnx", "a.onnx"], ["a.onnx"]),
])  # fmt: skip
def test_globs_find_files_sorted_in_any_order(tree: Path, globs: list[str], files: list[str]) -> None:
    for order in permutations(globs):
        assert found(tree, *order) == files


def test_absolute_globs_and_those_of_the_folder_above_are_taken(tree: Path) -> None:
    assert found(tree, "../*/a.onnx") == ["a.onnx"]
    assert matching_files(tree.parent, [f"{tree.parent.parent}/?odd? root0/fleet/a.onnx"]) == [str(tree / "a.onnx")]


@pytest.mark.parametrize("globs", [["a.onnx", "*.bin"], ["broken.onnx"], ["b"], ["a.onnx/*"], ["*.onnx", "!*"]])
def test_what_finds_nothing_is_named(tree: Path, globs: list[str]) -> None:
    with pytest.raises(MissingInputError) as caught:
        matching_files(tree, globs)
    assert globs[-1] in str(caught.value)


def test_a_folder_that_cannot_be_read_is_named(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: Path) -> list[str]:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr("os.listdir", refuse)
    with pytest.raises(DataError, match="fleet' cannot be read: Permission denied"):
        matching_files(tree, ["*.onnx"])


@pytest.mark.parametrize("glob", ["", "!", "a\0b", "x" * 5000, "a/" * 2100, "~nobody-of-this-name/x", "y" * 300])
def test_what_is_no_path_is_an_error_of_ours(tree: Path, glob: str) -> None:
    with pytest.raises(NndeployError):
        matching_files(tree, ["a.onnx", "!a.onnx", glob])


@given(globs=st.lists(st.text(alphabet="abc*?[]!./~-é", max_size=12), min_size=1, max_size=3))
def test_any_globs_find_files_of_the_tree_or_are_refused(tree: Path, globs: list[str]) -> None:
    within = [glob for glob in globs if ".." not in glob and not glob.lstrip("!").startswith(("/", "~"))]
    try:
        files = matching_files(tree, within)
    except NndeployError:
        return
    assert files == sorted(set(files))
    assert all(Path(file).is_relative_to(tree) and Path(file).is_file() for file in files)
