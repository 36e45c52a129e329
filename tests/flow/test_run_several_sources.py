# SPDX-License-Identifier: Apache-2.0
"""`run` over several sources: two models with data of their own, joins, routes, and files that records name."""

import io
import json
import os
import signal
import subprocess
import sys
import threading
import wave
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests_flow_bundles import write_double

from nndeploy.cli.main import run_command
from nndeploy.runtime.program import load_bundle
from nndeploy.stream.run.open_run import Ends, open_run, opened_models
from nndeploy.stream.run.options import RunOptions
from nndeploy.stream.stopping import Stop

TWO_MODELS = """
[[source]]
name = "left"
kind = "json-lines"
[[source]]
name = "right"
kind = "json-lines"
[[level]]
[[level.pipeline]]
name = "one"
source = "left"
model = "m.nnd"
outputs = { y = "twice" }
[[level.pipeline]]
name = "two"
source = "right"
model = "m.nnd"
outputs = { y = "twice" }
[[level]]
[[level.pipeline]]
name = "three"
model = "m.nnd"
when = "max(twice) < 100"
inputs = { image = "twice" }
outputs = { y = "four" }
[[sink]]
kind = "json-lines"
fields = ["twice", "four"]
"""

JOINED = """
[[source]]
name = "left"
kind = "json-lines"
fields = ["id", "image"]
[[source]]
name = "right"
kind = "json-lines"
fields = ["id", "word"]
[join]
by = "key"
field = "id"
missing = "drop"
[[level]]
[[level.pipeline]]
name = "one"
model = "m.nnd"
outputs = { y = "twice" }
[[sink]]
kind = "json-lines"
fields = ["id", "word", "twice"]
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_double(tmp_path / "m.nnd")
    return tmp_path


def run(*arguments) -> int:
    return run_command(["run", *map(str, arguments)])


def outputs(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def lines(path, rows):
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_each_model_has_data_of_its_own(here, capsys) -> None:
    (here / "p.toml").write_text(TWO_MODELS)
    lines("l.jsonl", [{"image": [[n, 0, 0]]} for n in range(10)])
    lines("r.jsonl", [{"image": [[0, n, 0]]} for n in range(46, 56)])
    arguments = ["--pipeline", "p.toml", "--input", "left=l.jsonl", "--input", "right=r.jsonl", "--output", "o.jsonl"]
    assert run(*arguments, "--json") == 0
    records = outputs("o.jsonl")
    assert [record["index"] for record in records] == list(range(20))
    left = [record for record in records if record["source"] == "left"]
    assert [record["outputs"] for record in left] == [
        {"twice": [[2 * n, 0, 0]], "four": [[4 * n, 0, 0]]} for n in range(10)
    ]
    right = [record for record in records if record["source"] == "right"]
    assert [record.get("not_taken") for record in right] == [None] * 4 + ["level 2"] * 6
    report = json.loads(capsys.readouterr().out)
    assert (report["failed"], report["not_taken"]) == (0, 6)
    assert [(one["name"], one["num_read"]) for one in report["sources"]] == [("left", 10), ("right", 10)]
    assert run(*arguments, "--resume") == 2
    assert "--resume needs one source of files" in capsys.readouterr().err


def test_records_are_joined_by_their_key(here, capsys) -> None:
    (here / "p.toml").write_text(JOINED)
    lines("l.jsonl", [{"id": n, "image": [[n, 0, 0]]} for n in range(10)])
    lines("r.jsonl", [{"id": n, "word": f"w{n}"} for n in range(12, 3, -1)])
    assert run("--pipeline", "p.toml", "--input", "left=l.jsonl", "--input", "right=r.jsonl", "-o", "o.jsonl") == 0
    assert sorted((one["outputs"] for one in outputs("o.jsonl")), key=lambda one: one["id"]) == [
        {"id": n, "word": f"w{n}", "twice": [[2 * n, 0, 0]]} for n in range(4, 10)
    ]
    told = capsys.readouterr().err
    assert "nndeploy: source 'left': 10 read, 4 without partner" in told
    assert "nndeploy: source 'right': 9 read, 3 without partner" in told


def test_a_file_that_grows_is_followed_until_a_signal(here) -> None:
    (here / "p.toml").write_text(TWO_MODELS)
    lines("r.jsonl", [{"image": [[0, 1, 0]]}])
    command = [
        sys.executable, "-m", "nndeploy", "run", "--pipeline", "p.toml", "--input", "left=tail:l.jsonl",
        "--input", "right=r.jsonl", "--output", "-",
    ]  # fmt: skip
    lines("l.jsonl", [{"image": [[n, 0, 0]]} for n in range(3)])
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        watch = threading.Timer(60, process.kill)
        watch.start()
        found = [json.loads(process.stdout.readline()) for _ in range(4)]
        with Path("l.jsonl").open("a") as file:
            file.write('{"image": [[7, 0, 0]]}\n')
        found.append(json.loads(process.stdout.readline()))
        process.send_signal(signal.SIGINT)
        rest, told = process.communicate()
        watch.cancel()
    assert process.returncode == 130
    assert rest == ""
    assert found[-1]["outputs"]["four"] == [[28, 0, 0]]
    assert sorted(one["source"] for one in found) == ["left"] * 4 + ["right"]
    assert "stopped before the end" in told


@pytest.mark.parametrize("prefix", ["tail:", ""], ids=["live", "files"])
def test_a_stop_is_how_a_live_stream_ends_and_its_files_stay(here, prefix) -> None:
    (here / "p.toml").write_text(JOINED)
    lines("l.jsonl", [{"id": n, "image": [[n, 0, 0]]} for n in range(3)])
    lines("r.jsonl", [{"id": n, "word": f"w{n}"} for n in range(3)])
    with ExitStack() as stack:
        loaded = opened_models(stack, None, Path("p.toml"), RunOptions(), load_bundle)
        stop = Stop()
        stack.callback(stop.close)
        ends = Ends(lambda: sys.stdin.buffer, sys.stdout, stop)
        stream = open_run(loaded, [f"left={prefix}l.jsonl", "right=r.jsonl"], "o.jsonl", RunOptions(), ends)
        summary = stream.run(lambda outcome: stop.request() if outcome.index == 2 else None)
    assert summary.is_stopped
    if prefix:
        assert [one["outputs"]["word"] for one in outputs("o.jsonl")] == ["w0", "w1", "w2"]
    else:
        assert not Path("o.jsonl").exists()


FILES = """
[source]
kind = "json-lines"
fields = ["photo", "note", "voice"]
[[level]]
[[level.pipeline]]
name = "load"
runners = 0
[[level.pipeline.loader]]
steps = [
  { use = "read", folder = "media", in = ["photo"], out = ["photo-data"] },
  { use = "decode", in = ["photo-data"], out = ["image"] },
  { use = "resize", width = 3, height = 1, in = ["image"], out = ["image", "transform"] },
]
[[level.pipeline.loader]]
steps = [
  { use = "read", folder = "media/notes", in = ["note"], out = ["note-data"] },
  { use = "decode-text", in = ["note-data"] },
]
[[level.pipeline.loader]]
steps = [
  { use = "read", folder = "media", in = ["voice"], out = ["voice-data"] },
  { use = "decode-wav", in = ["voice-data"] },
]
[[sink]]
kind = "json-lines"
fields = ["image", "text", "rate"]
"""


@pytest.fixture
def media(here):
    (here / "p.toml").write_text(FILES)
    (here / "media" / "notes").mkdir(parents=True)
    Image.fromarray(np.full((4, 6, 3), 7, np.uint8)).save("media/a.png")
    Path("media/notes/a.txt").write_text("hello")
    sound = io.BytesIO()
    with wave.open(sound, "wb") as writer:
        writer.setparams((1, 2, 8000, 0, "NONE", ""))
        writer.writeframes(bytes(200))
    Path("media/a.wav").write_bytes(sound.getvalue())
    Path("secret").write_text("secret")
    os.mkfifo("media/fifo")
    return here


def test_one_record_loads_an_image_a_text_and_a_sound(media) -> None:
    row = {"photo": "a.png", "note": "a.txt", "voice": "a.wav"}
    hostile = ["../secret", str(media / "secret"), "fifo", "notes/../../secret"]
    lines("x.jsonl", [row, *({**row, "photo": name} for name in hostile), {**row, "note": "../a.wav"}])
    assert run("--pipeline", "p.toml", "--input", "x.jsonl", "--output", "o.jsonl") == 1
    first, *others = outputs("o.jsonl")
    assert first["outputs"] == {"image": [[[7, 7, 7]] * 3], "text": "hello", "rate": 8000}
    assert [other["error"]["code"] for other in others] == ["bad-input"] * 5
    assert "secret" not in json.dumps([other.get("outputs") for other in others])


def test_a_bundle_names_no_folder_elsewhere(media, capsys) -> None:
    from nndeploy.errors import PolicyError
    from nndeploy.stream.pipeline.bundled_pipeline import carried_pipeline, pipeline_of_path

    text = FILES.replace('"media"', '"/etc"').replace("runners = 0", "")
    Path("q.toml").write_text(text)
    assert pipeline_of_path(Path("q.toml")).named == {}
    with pytest.raises(PolicyError, match="the folder '/etc' lies elsewhere"):
        carried_pipeline(Path("q.toml"))
    assert capsys.readouterr().err == ""


CAMERA = """
[source]
kind = "video"
[[level]]
[[level.pipeline]]
runners = 0
[[level.pipeline.post]]
steps = [{ use = "resize", width = 3, height = 1 }]
[[sink]]
kind = "json-lines"
fields = ["image", "frame"]
"""


@pytest.fixture
def camera(here):
    """Returns a function: shades of pictures -> the name of a FIFO over which they come as MPEG-TS."""
    av = pytest.importorskip("av", reason="the extra video is not installed")

    def written(shades):
        os.mkfifo("camera")
        file = io.BytesIO()
        with av.open(file, "w", format="mpegts") as container:
            stream = container.add_stream("mpeg2video", rate=25)
            stream.width, stream.height, stream.pix_fmt, stream.gop_size = 64, 48, "yuv420p", 1
            for shade in shades:
                frame = av.VideoFrame.from_ndarray(np.full((48, 64, 3), shade, np.uint8), format="rgb24")
                container.mux(stream.encode(frame))
            container.mux(stream.encode(None))
        threading.Thread(target=Path("camera").write_bytes, args=(file.getvalue(),), daemon=True).start()
        return "camera"

    (here / "c.toml").write_text(CAMERA)
    return written


def test_a_camera_is_read_and_what_was_dropped_is_told(camera, capsys) -> None:
    place = camera([40, 120, 200])
    arguments = ["--pipeline", "c.toml", "--input", place, "--output", "o.jsonl", "--metrics", "m.json", "--json"]
    assert run(*arguments, "--drop", "oldest", "--max-age-ms", "60000") == 0
    records, report = outputs("o.jsonl"), json.loads(capsys.readouterr().out)
    (source,) = report["sources"]
    assert (source["name"], source["num_read"]) == ("camera", 3)
    assert len(records) + source["num_dropped"] == 3
    for record in records:
        shade = (40, 120, 200)[record["outputs"]["frame"]]
        assert abs(record["outputs"]["image"][0][0][0] - shade) < 4
        assert record["origin"] == f"camera frame {record['outputs']['frame']}"
    assert json.loads(Path("m.json").read_text())["sources"] == report["sources"]
