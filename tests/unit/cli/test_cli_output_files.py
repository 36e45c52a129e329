# SPDX-License-Identifier: Apache-2.0
"""One rule for what commands write: a file by its name in a folder that is there; a folder of results is made."""

from pathlib import Path

import pytest

from nndeploy.cli.main import run_command
from nndeploy.errors import CannotCreateError
from nndeploy.files.whole_files import OutputFolder, new_file, write_file

WRITING = [
    ("compile", "m.onnx", "-o"), ("probe", "-o"), ("inspect", "m.nnd", "--html"), ("pace", "m.nnd", "-o"),
    ("pace", "m.nnd", "--html"), ("run", "m.nnd", "--metrics"), ("run", "m.nnd", "--trace"),
]  # fmt: skip


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = run_command(arguments)
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    return code, line


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("arguments", WRITING, ids=" ".join)
@pytest.mark.parametrize(("name", "code", "reason"), [
    ("-", 2, "names a file, and standard output is none"), ("folder/", 73, "is a folder")
])  # fmt: skip
def test_standard_output_and_a_folder_are_no_file(arguments, name, code, reason, here, capsys) -> None:
    found, line = refused([*arguments, name], capsys)
    assert (found, reason in line) == (code, True)
    assert list(here.iterdir()) == []


def test_compile_says_at_once_that_there_is_no_folder(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "m.onnx").write_bytes(b"")
    code, line = refused(["compile", "m.onnx", "-o", "no/m.nnd"], capsys)
    assert (code, "no/m.nnd: there is no folder 'no'" in line) == (73, True)


@pytest.mark.parametrize("write", [new_file, lambda path: write_file(path, lambda _: None)], ids=["new", "whole"])
def test_no_folder_is_made_on_the_way_to_a_file(write, here: Path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(CannotCreateError, match=r"a/x.json: there is no folder 'a' \(hint: create it first\)"):
        write(Path("a/x.json"))
    assert list(here.iterdir()) == []


def test_a_folder_of_results_is_made_in_one_that_is_there(here: Path) -> None:
    OutputFolder(Path("results")).close()
    assert (here / "results").is_dir()
    with pytest.raises(CannotCreateError, match="no/results: there is no folder 'no'"):
        OutputFolder(Path("no/results"))


@pytest.mark.parametrize(("option", "hint"), [
    ("--golden", "did you mean '--goldens'?"), ("--model", "it is an option of new, run"), ("--inflite", "see nndeploy")
])  # fmt: skip
def test_an_unknown_option_has_no_wrong_guess(option: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, line = refused(["compile", "m.onnx", "-o", "m.nnd", option, "1"], capsys)
    assert (code, f"nndeploy compile has no option '{option}' (hint: {hint}" in line) == (2, True)


def test_an_unknown_target_lists_the_known_ones(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "m.onnx").write_bytes(b"")
    code, line = refused(["compile", "m.onnx", "-o", "m.nnd", "--target", "mainframe"], capsys)
    assert code == 2
    assert all(name in line for name in ("raspberry-pi-5", "rtx4090", "x86-64-v3", "nndeploy probe -o box.toml"))
