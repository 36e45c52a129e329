# SPDX-License-Identifier: Apache-2.0
"""`run` with a pipeline: from a file, out of the bundle; several models; broken inputs; what people look at."""

import json
import shutil
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import onnx
import pytest
from exposition_page import samples_of
from PIL import Image
from tests_flow_bundles import write_double

from nndeploy.cli.main import run_command

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"

ARRAYS = """
[source]
kind = "json-lines"
[[level]]
[[level.pipeline]]
name = "one"
model = "m.nnd"
batch = 4
batch-delay-ms = 5
outputs = { y = "twice" }
[[level]]
[[level.pipeline]]
name = "two"
model = "m.nnd"
inputs = { image = "twice" }
outputs = { y = "four" }
[[level.pipeline]]
name = "three"
runners = 2
inputs = { image = "twice" }
outputs = { y = "other" }
"""


@pytest.fixture
def two_levels(here):
    write_double(here / "m.nnd")
    (here / "p.toml").write_text(ARRAYS)
    (here / "x.jsonl").write_text("".join(f'{{"image": [[{i}, 2, 3]]}}\n' for i in range(20)) + '{"image": 3}\n')
    return here


def run(*arguments) -> int:
    return run_command(["run", *map(str, arguments)])


def outputs(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def test_levels_of_models_give_their_fields_together(two_levels, capsys) -> None:
    assert run("m.nnd", "--pipeline", "p.toml", "--input", "x.jsonl", "--output", "y.jsonl", "--json") == 1
    records = outputs("y.jsonl")
    assert [record["index"] for record in records] == list(range(21))
    for i, record in enumerate(records[:20]):
        assert record["outputs"] == {"four": [[4 * i, 8, 12]], "other": [[4 * i, 8, 12]]}
    assert records[20]["error"]["stage"] == "one: runner"
    report = json.loads(capsys.readouterr().out)
    assert sorted(report["pipelines"]) == ["one", "three", "two"]
    stages = {stage["stage"]: stage for stage in report["stages"]}
    assert (stages["two: runner"]["workers"], stages["three: runner"]["workers"]) == (1, 2)
    assert stages["source"]["records"] == stages["sink"]["records"] == 21


def test_a_model_is_named_on_the_command_line(two_levels, capsys) -> None:
    shutil.move("m.nnd", "n.nnd")
    arguments = ["--pipeline", "p.toml", "--input", "x.jsonl", "--output", "y.jsonl"]
    assert run(*arguments) == 66
    assert "m.nnd: no such bundle, which the pipeline 'one' needs (hint: compile it" in capsys.readouterr().err
    assert run("n.nnd", *arguments, "--model", "one=n.nnd", "--model", "two=n.nnd") == 1
    assert run("n.nnd", *arguments, "--model", "tow=n.nnd") == 2
    assert "no pipeline with a model is called 'tow' (hint: did you mean 'two'?)" in capsys.readouterr().err
    assert run(*arguments, "--model", "one=n.nnd", "--model", "two=n.nnd") == 2
    assert "the pipeline 'three' names no model" in capsys.readouterr().err


def test_a_trace_has_a_row_for_each_worker(two_levels) -> None:
    run("m.nnd", "--pipeline", "p.toml", "--input", "x.jsonl", "--output", "y.jsonl", "--trace", "t.json")
    events = json.loads((two_levels / "t.json").read_text())["traceEvents"]
    rows = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert sorted(rows.values()) == [
        "one: runner", "sink", "source", *(f"three: runner {i}" for i in sorted({
            int(name[-1]) for name in rows.values() if name.startswith("three")
        })), "two: runner",
    ]  # fmt: skip
    done = {}
    for event in events:
        if event["ph"] == "X":
            assert event["dur"] >= 0
            done.setdefault(event["name"], []).extend(event["args"].get("records", [event["args"].get("record")]))
    assert sorted(done["one: runner"]) == sorted(done["sink"]) == list(range(21))
    arrows = {}
    for event in sorted((one for one in events if one["ph"] in "stf"), key=lambda one: one["ts"]):
        arrows.setdefault(event["id"], []).append(event["ph"])
    assert arrows.keys() == set(range(21))
    assert all(ends[0] == "s" and ends[-1] == "f" and set(ends[1:-1]) == {"t"} for ends in arrows.values())


def test_metrics_are_a_file_and_a_page_for_this_machine_alone(two_levels) -> None:
    from nndeploy.stream.description import StreamPlan
    from nndeploy.stream.engine.engine import Stream
    from nndeploy.stream.engine.metrics import MetricsServer, metrics_of
    from nndeploy.stream.pipeline.pipeline_file import PipelinePlan, RunnerPlan
    from nndeploy.stream.sources.readers import SourceFigures

    run("m.nnd", "--pipeline", "p.toml", "--input", "x.jsonl", "--output", "y.jsonl", "--metrics", "m.json")
    found = json.loads((two_levels / "m.json").read_text())
    assert (found["records"], found["failed"]) == (21, 1)
    assert {queue["name"] for queue in found["queues"]} >= {"one: runner", "level 2, copy", "level 2, sync", "sink"}
    for what, key in (("stages", "worked_ms"), ("queues", "waited_ms")):
        (one,) = (one[key] for one in found[what] if one["name"] == "one: runner")
        assert 0 < one["p50"] <= one["p90"] <= one["p99"]

    class Program:
        manifest, rows_at_once = type("Manifest", (), {"inputs": (), "outputs": ()}), 1

    plan = StreamPlan(((PipelinePlan('a "b"', runner=RunnerPlan(None, {})),),), ())
    stream = Stream(plan, {'a "b"': [Program()]})
    stream.sources = lambda: [SourceFigures("camera", num_read=5, num_dropped=2, num_skipped=3)]
    server = MetricsServer(0, lambda: metrics_of(stream))
    with server:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=10) as page:
            text = page.read().decode()
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"http://127.0.0.1:{server.port}/other", timeout=10)
    samples = samples_of(text)
    assert samples["nndeploy_stage_workers", frozenset({("stage", 'a \\"b\\": runner')})] == 1
    assert samples["nndeploy_records_total", frozenset()] == 0
    assert samples["nndeploy_source_dropped_total", frozenset({("source", "camera")})] == 2
    assert samples["nndeploy_source_skipped_total", frozenset({("source", "camera")})] == 3
    assert samples["process_open_fds", frozenset()] > 3


BROKEN = [
    b"", b"hello", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"GIF89a" + bytes(20), bytes(1000), b"PK\x03\x04",
    b"\x89PNG\r\n\x1a\n" + bytes(50), b"BM" + bytes(60), b"II*\x00" + bytes(60),
]  # fmt: skip


def test_of_a_thousand_images_ten_are_broken_in_ten_ways(here) -> None:
    (here / "in").mkdir()
    Image.new("RGB", (4, 4), (10, 20, 30)).save("good.png")
    good = (here / "good.png").read_bytes()
    for i in range(1000):
        (here / "in" / f"{i}.png").write_bytes(BROKEN[i // 100] if i % 100 == 50 else good)
    (here / "p.toml").write_text(
        '[source]\nkind = "images"\n[[level]]\n[[level.pipeline]]\nrunners = 0\n'
        "[[level.pipeline.loader]]\nworkers = 2\n"
        'steps = [{ use = "decode" }, { use = "resize", width = 2, height = 2 }]\n'
        '[[level.pipeline.post]]\nsteps = [{ use = "normalise" }]\n'
    )
    assert run("--pipeline", "p.toml", "--input", "in", "--output", "y.jsonl") == 1
    records = outputs("y.jsonl")
    assert [record["index"] for record in records] == list(range(1000))
    failed = [record for record in records if "error" in record]
    assert [record["index"] for record in failed] == list(range(50, 1000, 100))
    assert all(record["error"]["code"] == "bad-input" for record in failed)
    assert all(record["error"]["stage"] == "pipeline 1: loader" for record in failed)
    assert all(record["origin"] in record["error"]["message"] for record in failed)


def test_a_bundle_carries_its_pipeline_and_its_labels(here, capsys) -> None:
    (here / "labels.txt").write_text("".join(f"digit {i}\n" for i in range(10)))
    (here / "p.toml").write_text(
        '[source]\nkind = "arrays"\n[[level]]\n[[level.pipeline]]\nname = "read"\n[[level.pipeline.post]]\n'
        'steps = [{ use = "softmax", in = ["OUT"], out = ["scores"] },\n'
        '         { use = "top-k", labels = "labels.txt", in = ["scores"], out = ["labels", "best", "classes"] }]\n'
        '[[sink]]\nkind = "json-lines"\nfields = ["labels"]\n'
    )
    model = DIGITS / "digits.onnx"
    graph = onnx.load(model).graph
    text = (here / "p.toml").read_text().replace("OUT", graph.output[0].name)
    (here / "p.toml").write_text(text)
    arguments = ["compile", str(model), "--backends", "onnxruntime", "--pipeline", "p.toml", "-o", "d.nnd"]
    arguments += ["--objective", "priority"]
    assert run_command(arguments) == 0, capsys.readouterr().err
    (here / "p.toml").unlink()
    (here / "labels.txt").unlink()
    shape = [dim.dim_value or 1 for dim in graph.input[0].type.tensor_type.shape.dim]
    np.savez("x.npz", **{graph.input[0].name: np.zeros(shape, np.float32)})
    assert run("d.nnd", "--input", "x.npz", "--output", "y.jsonl") == 0, capsys.readouterr().err
    (record,) = outputs("y.jsonl")
    assert record["outputs"]["labels"][0].startswith("digit ")
    assert run("d.nnd", "--no-pipeline", "--input", "x.npz", "--output", "z.npz") == 0
    assert np.load("z.npz")[graph.output[0].name].size == 10


def test_a_pipeline_that_a_bundle_cannot_carry_is_refused(here, capsys) -> None:
    compile_it = ["compile", str(DIGITS / "digits.onnx"), "--pipeline", "p.toml", "-o", "d.nnd"]
    for code, text, message in (
        (77, "[[level]]\n[[level.pipeline]]\nmodel = '../x.nnd'", "the model '../x.nnd' lies elsewhere"),
        (65, "[[level]]\n[[level.pipeline]]\nmodel = 'x.nnd'", "no pipeline runs the bundle itself"),
        (65, "[[level]]", "has no pipeline"),
    ):
        (here / "p.toml").write_text(text)
        assert run_command(compile_it) == code
        assert message in capsys.readouterr().err
    (here / "p.toml").unlink()
    assert run_command(compile_it) == 66
    assert not (here / "d.nnd").exists()


@pytest.mark.parametrize("other", ["", "[[level]]\n[[level.pipeline]]\nname = 'other'\nmodel = 'other.nnd'\n"])
@pytest.mark.parametrize(("keys", "message"), [
    ('inputs = { imagge = "x" }', "inputs: the model has no input 'imagge' (hint: did you mean 'image'?)"),
    ('outputs = { zzz = "x" }', "outputs: the model has no output 'zzz'"),
    ('each = "list"\npart = "image"\ncarry = { zzz = "image" }', "carry: the model has no output 'zzz'"),
    ('each = "list"\npart = "image"\ncarry = { probabilities = "y" }', "carry: the model has no input 'y'"),
    ('carry = { probabilities = "image" }', "carry needs each"),
    ("batch = 300", "batch is 300, the model's batch is 1..64"),
])  # fmt: skip
def test_a_pipeline_that_does_not_fit_the_model_is_refused_before_it_is_built(
    other, keys, message, here, capsys
) -> None:
    """Names, state and batch are looked at even where other models of the pipeline are not here yet."""
    (here / "p.toml").write_text(f"[[level]]\n[[level.pipeline]]\nname = 'read'\n{keys}\n{other}")
    compile_it = ["compile", str(DIGITS / "digits.onnx"), "--pipeline", "p.toml", "-o", "d.nnd"]
    assert run_command([*compile_it, "--shape", "image=1..64,1,8,8"]) == 65
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("nndeploy: error[bad-data]: p.toml: level 1, pipeline 'read'")
    assert message in line
    assert [path.name for path in here.iterdir()] == ["p.toml"]


@pytest.mark.parametrize("command", [["run"], ["compile", str(DIGITS / "digits.onnx"), "-o", "d.nnd"]])
def test_a_pipeline_that_is_not_there_leads_to_the_examples(command, here, capsys) -> None:
    assert run_command([*command, "--pipeline", "facs.toml"]) == 66
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("nndeploy: error[no-input]: facs.toml: no such pipeline (hint: examples in ")
    folder, _, files = line.partition("examples in ")[2].partition(": ")
    assert "faces.toml" in files
    assert all((Path(folder) / name).is_file() for name in files.rstrip(")").split(", "))
