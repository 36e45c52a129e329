# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs as operators have them: pipes, links, one file under two names, two runs at once, other files."""

import io
import json
import os
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests_flow_bundles import write_double, write_picture

from nndeploy import run_pipeline
from nndeploy.cli.main import run_command
from nndeploy.errors import UsageError
from nndeploy.files.named_outputs import new_output
from nndeploy.files.whole_files import OutputFolder

LINES = '{"image": [[1, 2, 3]]}\n' * 3
RUN = ["run", "m.nnd", "-i"]
CSV = """
[source]
kind = "lines"
[[level]]
[[level.pipeline]]
name = "p"
runners = 0
[[level.pipeline.post]]
steps = [{ use = "constant", value = 1, out = ["one"] }]
[[sink]]
kind = "csv"
fields = ["text"]
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_double(tmp_path / "m.nnd")
    Path("in").mkdir()
    np.savez("in/x.npz", image=np.ones((1, 3), np.float32))
    np.save("x.npy", np.ones((1, 3), np.float32))
    Path("x.jsonl").write_text(LINES)
    Path("p.toml").write_text(CSV)
    Path("link").symlink_to("in")
    Path("link.jsonl").symlink_to("x.jsonl")
    os.link("x.jsonl", "second.jsonl")
    os.link("in/x.npz", "x.npz")
    return tmp_path


@pytest.mark.parametrize(("given", "output"), [
    (["x.jsonl"], "x.jsonl"), (["x.jsonl"], "link.jsonl"), (["link.jsonl"], "second.jsonl"),
    (["in/x.npz", "x.jsonl"], "./x.jsonl"), (["in"], "link/"), (["in"], "x.npz"), (["i*/x.npz"], "x.npz"),
    (["image=@x.npy"], "x.npy"),
])  # fmt: skip
def test_an_output_that_is_an_input_is_refused_before_any_work(given, output, here) -> None:
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    arguments = [part for text in given for part in ("-i", text)]
    assert run_command(["run", "m.nnd", *arguments, "-o", output]) == 2
    with pytest.raises(UsageError):
        run_pipeline("m.nnd", given, output)
    assert {path: path.read_bytes() for path in here.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("arguments", [
    ["run", "m.nnd", "-i", "x.jsonl", "-o", "y.npz", "--trace", "y.npz"],
    ["run", "m.nnd", "-i", "x.jsonl", "--metrics", "x.jsonl"], ["run", "m.nnd", "-i", "x.jsonl", "--trace", "m.nnd"],
    ["run", "--pipeline", "p.toml", "-i", "x.jsonl", "-o", "p.toml"], ["compile", "x.npz", "-o", "in/x.npz"],
    ["inspect", "m.nnd", "--html", "m.nnd"], ["pace", "m.nnd", "-o", "m.nnd"],
])  # fmt: skip
def test_no_command_writes_over_what_it_reads(arguments, here) -> None:
    before = Path("m.nnd").read_bytes()
    assert run_command(arguments) == 2
    assert Path("m.nnd").read_bytes() == before


@pytest.mark.parametrize(
    ("name", "suffix"), [("x.jsonl", ""), ("x.npz", ""), ("x.npy", ""), ("x.npz", ".npz"), ("x.jsonl", ".jsonl")]
)
def test_a_pipe_is_an_input_of_what_comes_out_of_it(name, suffix, here, capfd) -> None:
    pipe = f"pipe{suffix}"
    os.mkfifo(pipe)
    with fed(pipe, Path(name).read_bytes()):
        assert run_command([*RUN, pipe, "-o", "out.jsonl"]) == 0
    assert len(Path("out.jsonl").read_text().splitlines()) == (3 if name == "x.jsonl" else 1)


@pytest.mark.parametrize(("arguments", "name", "num_lines"), [
    (["run", "m.nnd", "-i", "x.jsonl", "-o"], "pipe", 3),
    (["run", "m.nnd", "-i", "x.jsonl", "-o"], "pipe.jsonl", 3),
    (["run", "--pipeline", "p.toml", "-i", "x.jsonl", "-o"], "pipe", 4),
    (["run", "m.nnd", "-i", "x.npz", "-o"], "pipe.npz", None),
    (["probe", "-o"], "pipe", None),
    (["run", "m.nnd", "-i", "x.npz", "--trace"], "pipe", None),
])  # fmt: skip
def test_a_pipe_is_written_into(arguments, name, num_lines, here) -> None:
    os.mkfifo(name)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(Path(name).read_bytes()), daemon=True)
    reader.start()
    assert run_command([*arguments, name]) == 0
    reader.join(20)
    assert Path(name).is_fifo()
    assert len(got[0].splitlines()) == (num_lines or len(got[0].splitlines()))
    assert got[0]
    assert not name.endswith(".npz") or zipfile.ZipFile(io.BytesIO(got[0])).namelist() == ["y.npy"]


def test_a_device_is_written_into(here) -> None:
    assert run_command([*RUN, "x.jsonl", "-o", "/dev/null"]) == 0
    assert run_command([*RUN, "x.jsonl", "-o", "/dev/full"]) == 74


@pytest.mark.parametrize("more", [[], ["--resume"]])
@pytest.mark.parametrize("output", ["y.jsonl", "out/"])
def test_a_second_run_on_one_output_is_busy(output, more, here) -> None:
    Path("other").symlink_to("y.jsonl" if output == "y.jsonl" else "out")
    if output == "out/":
        first = OutputFolder(Path("out"))
        first.claim()
    else:
        first = new_output(Path("other"))
    assert run_command([*RUN, "x.jsonl", "-o", output, *more]) == 75
    assert not Path("y.jsonl").exists()
    first.close() if isinstance(first, OutputFolder) else first.discard()
    assert run_command([*RUN, "x.jsonl", "-o", output, *more]) == 0
    assert run_command([*RUN, "x.jsonl", "-o", output, *more]) == 0
    assert not [path for path in here.iterdir() if path.name.startswith(".nndeploy")]


def test_what_a_killed_run_left_is_no_other_run(here) -> None:
    first = new_output(Path("y.jsonl"))
    first.file.write(b"half")
    first.file.flush()
    os.close(first._lock)  # as a kill does
    first.file.close()
    (left,) = here.glob(".nndeploy-*.tmp")
    assert run_command([*RUN, "x.jsonl", "-o", "y.jsonl"]) == 0
    assert len(Path("y.jsonl").read_text().splitlines()) == 3
    assert not left.exists()


@pytest.mark.parametrize("kind", ["GIF", "BMP", "WEBP", "TIFF"])
def test_a_folder_of_images_has_all_formats_and_the_others_are_counted(kind, here, capsys) -> None:
    write_picture(Path("p.nnd"))
    Path("photos").mkdir()
    for name in ("a.txt", "b.TXT", "c", ".hidden"):
        Path("photos", name).touch()
    Path("photos/more").mkdir()
    Image.new("L", (30, 20), 200).save(f"photos/x.{kind.lower()}", kind)
    assert run_command(["run", "p.nnd", "-i", "photos", "--json", "-o", "out.jsonl"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["passed_over"] == {".txt": 2, "": 1}
    assert "3 files passed over: .txt 2, no suffix 1" in captured.err
    (record,) = map(json.loads, Path("out.jsonl").read_text().splitlines())
    assert record["label"] == "bright"


class fed:  # noqa: N801 - a context manager reads like a function
    """Writes into a FIFO meanwhile."""

    def __init__(self, path: str, data: bytes) -> None:
        self._thread = threading.Thread(target=lambda: Path(path).write_bytes(data), daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._thread.join(20)
