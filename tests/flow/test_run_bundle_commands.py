# SPDX-License-Identifier: Apache-2.0
"""`inspect`, `verify`, `bench`, `diff`, `backends` and `probe`, in process, on small bundles."""

import dataclasses
import json
from xml.etree import ElementTree as ET

import numpy as np
import onnx.parser
import onnxruntime
import pytest
from tests_flow_bundles import DOUBLE, write_branches, write_double

from nndeploy.bundle.manifest import (
    Compressed,
    ImageInput,
    Manifest,
    NamedType,
    PlacedSubmodel,
    Placing,
    TargetChain,
    Variant,
)
from nndeploy.bundle.reader import open_bundle
from nndeploy.cli.console import tell
from nndeploy.cli.main import run_command
from nndeploy.cli.views.bundle_differences import differences
from nndeploy.cli.views.difference_classes import CLASSES
from nndeploy.target.target import host_target, target_from_toml
from nndeploy.values.types import TensorType

FOREIGN = Variant("v0-far", "onnxruntime", "vax", {"a": "submodels/s0/v0-far/a"}, requires={"arch": "vax"})
COMPILE = ("compile", "--backends", "reference", "--objective", "priority")
UNKNOWN = Variant("v0-unknown", "unknown", "host", {"a": "submodels/s0/v0-unknown/a"})
BROKEN = Variant("v0-broken", "onnxruntime", "host", {"model.onnx": "submodels/s0/v0-broken/a"})


def call(capsys, *arguments):
    """Returns (exit code, stdout, stderr)."""
    code = run_command([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_verify_finds_other_results(here, capsys) -> None:
    write_double(here / "m.nnd", golden=2.001)
    code, out, err = call(capsys, "verify", "m.nnd")
    assert code == 1
    assert out.splitlines()[-1].startswith("FAILED, 0 of 1 output")
    assert err == "nndeploy: error[check-failed]: m.nnd: 1 of 1 outputs differ from the reference\n"
    for options, verdict in ((("--rtol", "0.01"), "PASSED, 1 of 1 output"), (("--no-run",), "PASSED, ")):
        code, out, _ = call(capsys, "verify", "m.nnd", *options)
        assert code == 0
        assert out.splitlines()[-1].startswith(verdict)
    code, out, _ = call(capsys, "verify", "m.nnd", "--json")
    report = json.loads(out)
    assert (code, report["ok"]) == (1, False)
    assert report["outputs"][0]["output"] == "y"
    assert report["outputs"][0]["max_abs"] == pytest.approx(0.005, rel=1e-2)


def test_verify_finds_every_damaged_member(here, capsys) -> None:
    write_double(here / "m.nnd")
    whole = (here / "m.nnd").read_bytes()
    at = whole.index(b"goldens/0/outputs.values") + 200
    (here / "m.nnd").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    code, out, err = call(capsys, "verify", "m.nnd", "--no-run")
    assert (code, out) == (65, "")
    assert err.startswith("nndeploy: error[bad-bundle]: m.nnd")


@pytest.mark.parametrize("arguments", [
    ("run", "m.nnd", "--input", "x.npz", "--output", "y.npz", "-v"),
    ("verify", "m.nnd"),
    ("bench", "m.nnd", "--iterations", "1", "--duration", "0.001", "--warmup", "10000"),
    ("inspect", "m.nnd"),
])  # fmt: skip
def test_quiet_leaves_results_warnings_and_errors(here, capsys, arguments) -> None:
    write_double(here / "m.nnd")
    np.savez("x.npz", image=np.ones((1, 3), np.float32))
    loud = call(capsys, *arguments)
    quiet = call(capsys, *arguments, "--quiet")
    assert (quiet[0], quiet[2], bool(quiet[1])) == (0, "", bool(loud[1]))
    assert bool(loud[2]) == (arguments[0] in ("run", "bench"))
    write_double(here / "m.nnd", others=(FOREIGN, UNKNOWN))
    assert ("warning: " in call(capsys, *arguments, "-q")[2]) == (arguments[0] != "inspect")
    assert "error[no-input]" in call(capsys, arguments[0], "no.nnd", *arguments[2:], "-q")[2]
    assert call(capsys, "targets")[0] == 0
    tell("no longer quiet")
    assert "no longer quiet" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "inspect", "verify", "bench"])
def test_what_is_no_bundle_is_one_line(here, capsys, command) -> None:
    (here / "m.nnd").write_bytes(b"hello")
    code, out, err = call(capsys, command, "m.nnd")
    assert (code, out) == (65, "")
    assert err.startswith("nndeploy: error[bad-bundle]: m.nnd: ")
    assert err.count("\n") == 1
    assert call(capsys, command, "nowhere.nnd")[0] == 66
    assert call(capsys, command, here)[0] == 65


def test_a_bundle_of_a_newer_format_says_so(here, capsys, monkeypatch) -> None:
    write_double(here / "m.nnd")
    monkeypatch.setattr("nndeploy.bundle.manifest_json.FORMAT_MAJOR", 0)
    code, _, err = call(capsys, "run", "m.nnd", "--input", "x.npz")
    assert (code, err.count("\n")) == (65, 1)
    assert "newer" in err


def test_a_backend_that_is_not_installed_is_passed_over_with_a_warning(here, capsys) -> None:
    write_double(here / "m.nnd", others=(FOREIGN, UNKNOWN))
    np.savez("x.npz", image=np.ones((1, 3), np.float32))
    code, _, err = call(capsys, "run", "m.nnd", "--input", "x.npz")
    assert code == 0
    assert err.splitlines()[0] == (
        "nndeploy: warning: submodel s0 runs on onnxruntime (v0-onnxruntime), not on unknown (v0-unknown): "
        "the backend unknown is not installed here"
    )
    code, _, err = call(capsys, "run", "m.nnd", "--input", "x.npz", "--strict")
    assert code == 69
    assert "m.nnd: s0: variant v0-unknown cannot be taken: the backend unknown is not installed here" in err
    assert "install the plugin" in err


def test_a_variant_that_does_not_open_is_passed_over_with_a_warning(here, capsys) -> None:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[1,3] image) => (float[1,3] y) { y = Nonesuch(image) }'
    member = onnx.parser.parse_model(text).SerializeToString()
    write_double(here / "m.nnd", others=(BROKEN,), members={BROKEN.files["model.onnx"]: member})
    code, _, err = call(capsys, "verify", "m.nnd")
    assert code == 0
    assert "not on onnxruntime (v0-broken): " in err


def test_inspect_tells_who_runs_what_and_why(here, capsys) -> None:
    write_double(here / "m.nnd", others=(FOREIGN, UNKNOWN))
    code, out, _ = call(capsys, "inspect", "m.nnd", "--here", "-v")
    assert code == 0
    for part in (
        "float32[N,3]", "1..8, best 2", "openvino: too small", "v0-unknown", "vax", "needs vax",
        "s0_Mul", "whole", "submodels/s0/v0-onnxruntime/model.onnx", "options.objective: priority",
    ):  # fmt: skip
        assert part in out


def test_inspect_writes_a_page(here, capsys) -> None:
    write_branches(here / "m.nnd")
    code, _, _ = call(capsys, "inspect", "m.nnd", "--html", "m.html")
    page = (here / "m.html").read_text()
    assert code == 0
    assert page.startswith("<!doctype html>")
    assert page.count('class="edge cross"') == 2
    assert call(capsys, "inspect", "m.nnd", "--html", "/proc/nowhere/m.html")[0] == 73


def test_bench_measures_what_it_is_asked(here, capsys) -> None:
    write_double(here / "m.nnd")
    code, out, _ = call(capsys, "bench", "m.nnd", "--iterations", "7", "--warmup", "0", "--json")
    report = json.loads(out)
    assert code == 0
    assert report["iterations"] == len(report["durations_ns"]) == 7
    assert report["inputs"] == "1 golden input"
    assert report["latency_ms"]["p50"] <= report["latency_ms"]["p99"]
    code, out, _ = call(capsys, "bench", "m.nnd", "--duration", "0.05")
    assert code == 0
    assert "calls/s" in out
    assert "p99" in out


@pytest.mark.parametrize(("gates", "code", "said"), [
    (("--max-p99", "1m"), 2, "--max-p99"),
    (("--max-p99", "1s"), 0, ""),
    (("--max-p99", "0.001us"), 1, "p99"),
    (("--against", "before.json", "--max-slowdown", "999999999%"), 0, ""),
    (("--against", "faster.json", "--max-slowdown", "5%"), 1, "5%"),
    (("--against", "faster.json", "--max-slowdown", "5%", "--max-p99", "0.001us"), 1, "limit is 1e-06 ms; p50"),
    (("--against", "before.json", "--max-slowdown", "5%", "--threads", "1"), 65, "--threads"),
    (("--against", "other.json", "--max-slowdown", "5%"), 65, "model"),
    (("--against", "shapes.json", "--max-slowdown", "5%"), 65, "image[7,3]"),
    (("--against", "m.nnd", "--max-slowdown", "5%"), 65, "m.nnd"),
    (("--against", "nowhere.json", "--max-slowdown", "5%"), 66, "nowhere.json"),
    (("--against", "before.json"), 2, "--max-slowdown"),
    (("--max-slowdown", "5%"), 2, "--against"),
    (("--max-p99", "1s", "--operators"), 2, "--operators"),
    (("--max-p99", "1s", "--scenario", "offline"), 2, "--scenario"),
])  # fmt: skip
def test_bench_fails_where_a_gate_does_and_tells_what_it_measured(here, capsys, gates, code, said) -> None:
    write_double(here / "m.nnd")
    command = ("bench", "m.nnd", "--iterations", "3", "--warmup", "0", "--json")
    before = json.loads(call(capsys, *command)[1])
    fast = before | {"latency_ms": dict.fromkeys(before["latency_ms"], 1e-9)}
    files = {
        "before": before, "faster": fast, "other": before | {"model": "x"},
        "shapes": before | {"shapes": ["image[7,3]"]},
    }  # fmt: skip
    for name, report in files.items():
        (here / f"{name}.json").write_text(json.dumps(report))
    options = [part for part in command if "--operators" not in gates or part not in ("--iterations", "3")]
    options = options[:2] + options[4:] if "--scenario" in gates else options
    found, out, err = call(capsys, *options, *gates)
    assert (found, err.count("\n")) == (code, 1 if code else 0), err
    assert said in err
    assert ("latency_ms" in json.loads(out)) == (code < 2)


@pytest.mark.parametrize(("arguments", "code", "case"), [
    (("verify", "m.nnd"), 0, "golden 0 (sample): y"),
    (("verify", "m.nnd", "--rtol", "0", "--atol", "0"), 1, "golden 0 (sample): y"),
    (("verify", "no.nnd"), 66, "verify"),
    (("bench", "m.nnd", "--iterations", "1", "--max-p99", "1s"), 0, "--max-p99"),
    (("bench", "m.nnd", "--iterations", "1", "--max-p99", "0.001us"), 1, "--max-p99"),
    ((*COMPILE, "m.onnx", "-o", "o.nnd"), 0, "output y"),
    ((*COMPILE, "m.onnx", "-o", "o.nnd", "--max-size", "1B"), 1, "compile"),
    (("compile", "no.onnx", "-o", "o.nnd"), 66, "compile"),
])  # fmt: skip
def test_ci_is_told_what_a_command_found(here, capsys, monkeypatch, arguments, code, case) -> None:
    write_double(here / "m.nnd", golden=2.0 if code != 1 else 2.0000005)
    onnx.save(onnx.parser.parse_model(DOUBLE), here / "m.onnx")
    found, _, err = call(capsys, *arguments, "--junit", "r.xml", "--markdown", "r.md", "-q")
    assert (found, "::error" in err) == (code, False)
    cases = {one.get("name"): one for one in ET.parse(here / "r.xml").iter("testcase")}  # noqa: S314 our own
    assert bool(len(cases[case].findall("failure") + cases[case].findall("error"))) == (code != 0)
    told = (here / "r.md").read_text()
    assert told.splitlines()[0].endswith("FAILED" if code else "PASSED")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(here / "summary.md"))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    found, _, err = call(capsys, *arguments, "-q")
    assert (found, err.count("::error title=nndeploy::")) == (code, 1 if code else 0)
    assert (here / "summary.md").read_text().splitlines()[0] == told.splitlines()[0]


@pytest.mark.parametrize(("subject", "code"), [("m.nnd", 73), ("no.nnd", 66)])
def test_a_report_for_ci_that_cannot_be_written_hides_no_error(here, capsys, monkeypatch, subject, code) -> None:
    write_double(here / "m.nnd")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(here))
    found, _, err = call(capsys, "verify", subject)
    assert found == code
    assert str(here) in err


def test_bench_does_not_count_the_first_call_of_each_shape(here, capsys, monkeypatch) -> None:
    write_double(here / "m.nnd")
    took = iter([5_000_000, 7_000_000, *[1000] * 100])
    monkeypatch.setattr("nndeploy.cli.commands.bench._timed_ns", lambda *_: next(took))
    for name, rows in (("a", 1), ("b", 2), ("c", 1)):
        np.savez(here / f"{name}.npz", image=np.ones((rows, 3), np.float32))
    code, out, err = call(capsys, "bench", "m.nnd", "--input", "*.npz", "--warmup", "0", "--iterations", "4", "--json")
    report = json.loads(out)
    assert (code, err) == (0, "")
    assert (report["first_ms"], report["durations_ns"], report["mean_ms"]) == (5.0, [1000] * 4, 0.001)


def test_diff_shows_what_differs(here, capsys) -> None:
    write_double(here / "a.nnd")
    write_branches(here / "b.nnd")
    code, out, _ = call(capsys, "diff", "a.nnd", "b.nnd", "--json")
    data = json.loads(out)
    found = {(d["part"], d["name"]): (d["a"], d["b"]) for d in data["differences"]}
    assert (code, data["same"]) == (1, False)
    assert found["range", "N"] == ("1..8", None)
    assert found["node", "s0_Mul"] == ("onnxruntime in s0", None)
    assert found["submodel", "s1"] == (None, "onnxruntime for host")
    assert ("member", "goldens/0/inputs.values") in found
    assert {d["class"] for d in data["differences"]} == {"numbers", "placement", "provenance"}
    assert sum(data["classes"].values()) == len(data["differences"])
    code, out, _ = call(capsys, "diff", "a.nnd", "b.nnd")
    assert code == 1
    assert "s0_Mul" in out
    assert call(capsys, "diff", "a.nnd", "nowhere.nnd")[0] == 66


def test_diff_has_one_line_for_a_submodel_and_no_python(here, capsys) -> None:
    write_double(here / "a.nnd")
    options = {"options": {"shapes": {"x": [1, 3]}, "fast": True, "targets": ["box"], "none": None}}
    far = {"submodels/s0/v0-far/a": b"far"}
    write_double(here / "b.nnd", others=(FOREIGN,), members=far, provenance=options)
    _, out, _ = call(capsys, "diff", "a.nnd", "b.nnd")
    (line,) = [line for line in out.splitlines() if line.startswith("s0")]
    assert "placement" in line
    assert "onnxruntime for vax" in line
    assert "shapes: none -> x 1, 3" in out
    assert not set("{}'[]") & set(out)
    assert not {"True", "None"} & set(out.split())


@pytest.mark.parametrize(
    ("ignored", "code", "shown"), [((), 1, True), (("placement",), 1, False), (("placement", "provenance"), 0, False)]
)
def test_diff_judges_what_is_not_ignored(here, capsys, ignored, code, shown) -> None:
    write_double(here / "a.nnd")
    far = {"submodels/s0/v0-far/a": b"far"}
    write_double(here / "b.nnd", others=(FOREIGN,), members=far, provenance={"by": "me"})
    options = [word for name in ignored for word in ("--ignore", name)]
    found, out, _ = call(capsys, "diff", "a.nnd", "b.nnd", *options)
    assert (found, "vax" in out) == (code, shown)
    found, out, _ = call(capsys, "diff", "a.nnd", "b.nnd", *options, "--json")
    data = json.loads(out)
    assert (found, data["ok"], data["same"]) == (code, code == 0, False)
    assert data["ignored"] == list(ignored)


def test_diff_escapes_names_in_markdown(here, capsys) -> None:
    write_double(here / "a.nnd")
    write_double(here / "b.nnd", provenance={"<b>|": "x|y"})
    assert call(capsys, "diff", "a.nnd", "b.nnd", "--markdown", "r.md")[0] == 1
    text = (here / "r.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len({row.count("|") for row in rows}) == 1
    assert "<b>" not in text


def test_diff_keeps_names_whole_on_a_terminal(here, capsys, monkeypatch) -> None:
    name = "a-part-of-forty-characters-which-is-long"
    write_double(here / "a.nnd")
    write_double(here / "b.nnd", provenance={name: {f"option_number_{n}": "set" for n in range(9)}})
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert name in call(capsys, "diff", "a.nnd", "b.nnd")[1]


@dataclasses.dataclass
class Opened:
    """What `differences` needs of a bundle."""

    manifest: Manifest
    plain_report: dict
    signature: bytes = b""

    def report(self):
        return self.plain_report


CHANGES = {
    "model_name": ("other", "provenance"),
    "model_sha256": ("1" * 64, "provenance"),
    "inputs": ((NamedType("image", TensorType("float32", (None, 3))),), "numbers"),
    "outputs": ((NamedType("y", TensorType("float32", None)),), "numbers"),
    "submodels": ((), "placement"),
    "values": ({"image": TensorType("float32", None)}, "numbers"),
    "target_chains": ((TargetChain("box", "box", (), {}),), "placement"),
    "ranges": ({}, "numbers"),
    "aliases": ({"z": "image"}, "numbers"),
    "constants": ("goldens/0/inputs.values", "numbers"),
    "defaults": ({"image": "goldens/0/inputs.values"}, "numbers"),
    "goldens": ((), "numbers"),
    "tolerances": ({}, "numbers"),
    "checks": (({"scope": "whole"},), "placement"),
    "image_input": (ImageInput("image", 1, 1, "L", "NCHW", (0.0,), (1.0,)), "numbers"),
    "pace_libraries": ({"x86_64": "goldens/0/inputs.values"}, "placement"),
    "pace_operators": ("goldens/0/inputs.values", "placement"),
    "provenance": ({}, "provenance"),
    "members": ({}, "numbers"),
    "compressed": ({"goldens/0/inputs.values": Compressed("1" * 64, 1)}, "numbers"),
    "placings": ({"portable": Placing({"s0": PlacedSubmodel("cpu:1", 1, 2)}, {"image": 3})}, "placement"),
}
"""Of each part another one, and the first of the classes that its change is of."""


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Manifest)])
def test_diff_sees_a_change_of_any_part_of_a_manifest(here, name) -> None:
    with open_bundle(write_double(here / "a.nnd")) as a:
        report = a.report()
        other, kind = CHANGES[name]
        changed = dataclasses.replace(a.manifest, **{name: other})
        assert differences(a, Opened(a.manifest, report)) == []
        found = {one.kind for one in differences(a, Opened(changed, report))}
        assert min(found, key=CLASSES.index) == kind


def test_backends_are_listed_with_reasons(here, capsys) -> None:
    code, out, _ = call(capsys, "backends", "--json")
    found = {row["name"]: row for row in json.loads(out)["backends"]}
    assert code == 0
    assert {"onnxruntime", "openvino", "reference"} <= set(found)
    assert found["onnxruntime"]["can_run"]
    assert all(row["can_run"] or row["reason"] for row in found.values())
    assert all(not (row["absent_hardware"] and row["hint"]) for row in found.values())
    assert "raspberry-pi-5" in found["onnxruntime"]["builds_for"]
    assert "onnxruntime" in call(capsys, "backends")[1]


def test_probe_describes_this_machine(here, capsys) -> None:
    code, out, _ = call(capsys, "probe")
    assert code == 0
    (here / "shown.toml").write_text(out)
    assert call(capsys, "probe", "-o", "box.toml")[:2] == (0, "")
    for name in ("shown.toml", "box.toml"):
        target = target_from_toml(here / name)
        assert dict(target.libraries)["onnxruntime"] == onnxruntime.__version__
        assert dataclasses.replace(target, is_host=True, libraries=()) == host_target()
    code, out, _ = call(capsys, "probe", "--json")
    assert json.loads(out)["arch"] == host_target().arch
    assert call(capsys, "probe", "-o", "/proc/nowhere/box.toml")[0] == 73


def test_the_page_of_inspect_draws_what_run_told(here, capsys) -> None:
    write_double(here / "m.nnd")
    (here / "x.jsonl").write_text('{"image": [[1.0, 2.0, 3.0]]}\n')
    code, out, _ = call(capsys, "run", "m.nnd", "-i", "x.jsonl", "-o", "y.jsonl", "--json")
    assert code == 0
    (here / "run.json").write_text(out)
    inspect = ("inspect", "m.nnd", "--measured", "run.json")
    assert call(capsys, *inspect, "--html", "m.html")[0] == 0
    assert "model: runner" in (here / "m.html").read_text()
    assert call(capsys, *inspect)[0] == 2
    for other in ("{", '{"items": 1}'):
        (here / "run.json").write_text(other)
        assert call(capsys, *inspect, "--html", "m.html")[0] == 65
