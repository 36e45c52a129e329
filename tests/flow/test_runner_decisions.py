# SPDX-License-Identifier: Apache-2.0
"""nndeploy-run and the C library take what `nndeploy tune --decisions` wrote, as Python does, and nothing of others."""

import ctypes
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from compile_with import native_compiler
from nndeploy_kernels import build_runtime
from nndeploy_kernels.build import level_here

from nndeploy import load_bundle
from nndeploy.cli.main import run_command
from nndeploy.version import __version__

CONVOLUTION = """<ir_version: 8, opset_import: ["": 17]>
convolution (float[n,48,20,20] x) => (float[n,48,20,20] y) { h = Conv<pads=[1,1,1,1]>(x, w) y = Relu(h) }"""
BY_RULE, DIRECT, BLOCKS = {}, {"way": 1}, {"cache_bytes": 1 << 16, "stores": 2}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = onnx.parser.parse_model(CONVOLUTION)
    weights = np.random.default_rng(0).standard_normal((48, 48, 3, 3)).astype(np.float32) / 20
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    return native_compiler(tmp_path_factory.mktemp("bundle"))(model)


@pytest.fixture(scope="module")
def recorded(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a tune on this machine found of images of two sizes, of which nothing is kept."""
    folder = tmp_path_factory.mktemp("tuned")
    command = ["tune", str(bundle), "--seconds", "0.2", "--threads", "1", "--cache", str(folder)]
    assert run_command([*command, "--shape", "x=2,48,20,20", "--decisions", str(folder / "tuned.json")]) == 0
    found: dict[str, Any] = json.loads((folder / "tuned.json").read_text(encoding="utf-8"))
    return found


def decided(recorded: dict[str, Any], bundle: Path, choice: dict[str, int]) -> dict[str, Any]:
    """Returns the same as if this choice had been found for the convolution, at these sizes alone."""
    with load_bundle(bundle, threads=1, cache_dir="") as program:
        (session,) = program.sessions.values()
        steps = session.steps_here({"x": (2, 48, 20, 20)})  # type: ignore[attr-defined] # of native
    (number,) = (i for i, step in enumerate(steps) if "by Winograd" in str(step))
    data: dict[str, Any] = json.loads(json.dumps(recorded))
    data["tuned"][0]["tables"][0]["steps"] = {str(number): choice} if choice else {}
    return data


def test_the_runtime_has_the_version_of_the_package() -> None:
    header = Path(build_runtime.RUNTIME / "version.h").read_text(encoding="utf-8")
    assert f'#define NND_VERSION "{__version__}"\n' in header


Ran = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def ran(runner: Path, bundle: Path, tmp_path: Path) -> Ran:
    """Returns what runs the bundle with decisions."""

    def run(decisions: object, *more: str) -> "subprocess.CompletedProcess[str]":
        (tmp_path / "tuned.json").write_text(decisions if isinstance(decisions, str) else json.dumps(decisions))
        command = [runner, bundle, "--threads", "1", "--decisions", tmp_path / "tuned.json", *more]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run


def files(folder: Path) -> list[str]:
    """Returns the options that take x.npy of a folder and write y.npy there."""
    return ["-i", str(folder / "x.npy"), "-o", str(folder)]


def images(count: int) -> Any:
    return np.random.default_rng(count).standard_normal((count, 48, 20, 20)).astype(np.float32)


def by_python(bundle: Path, x: Any, decisions: dict[str, Any] | None, folder: Path) -> bytes:
    """Returns the bits of `y` where decisions were taken over before."""
    if decisions is not None:
        (folder / "given.json").write_text(json.dumps(decisions))
        command = ["tune", str(bundle), "--threads", "1", "--cache", str(folder / "cache")]
        assert run_command([*command, "--decisions", str(folder / "given.json")]) == 0
    with load_bundle(bundle, threads=1, cache_dir=str(folder / "cache")) as program:
        return np.asarray(program.run({"x": x})["y"]).tobytes()


@pytest.mark.parametrize(("count", "is_taken"), [(2, True), (3, False)])
@pytest.mark.parametrize("choice", [BY_RULE, BLOCKS, DIRECT], ids=["rule", "blocks", "direct"])
def test_the_program_gives_the_bits_of_python_with_the_same_decisions(
    bundle: Path, recorded: dict[str, Any], ran: Ran, tmp_path: Path, choice: dict[str, int], count: int, is_taken: bool
) -> None:
    decisions, x = decided(recorded, bundle, choice), images(count)
    np.save(tmp_path / "x.npy", x)
    done = ran(decisions, *files(tmp_path), "-v")
    assert (done.returncode, len(done.stderr.splitlines())) == (0, 1)
    assert "1 set of shapes" in done.stderr
    found = np.load(tmp_path / "y.npy").tobytes()
    assert found == by_python(bundle, x, decisions, tmp_path)
    is_by_rule = found == by_python(bundle, x, None, tmp_path / "rules")
    assert is_by_rule == (choice is not DIRECT or not is_taken)  # the direct sum has other last bits


def test_the_library_takes_them_too(bundle: Path, recorded: dict[str, Any], tmp_path: Path) -> None:
    library = ctypes.CDLL(str(build_runtime.build_libraries(level_here().arch)[1]))
    library.nnd_open_tuned.restype, library.nnd_decisions_note.restype = ctypes.c_void_p, ctypes.c_char_p
    notes = []
    for threads in (1, 2):
        options, error = ctypes.c_int(threads), ctypes.create_string_buffer(500)
        text = json.dumps(decided(recorded, bundle, BLOCKS)).encode()
        program = ctypes.c_void_p(
            library.nnd_open_tuned(str(bundle).encode(), text, ctypes.byref(options), ctypes.byref(error))
        )
        assert program, error.raw
        notes.append(library.nnd_decisions_note(program))
        library.nnd_close(program)
    assert notes[0] == b""
    assert notes[1]


@pytest.mark.parametrize(
    ("where", "value"),
    [("processor", "another"), ("level", "x86-64-v9"), ("caches", {}), ("buffer_bytes", 5), ("threads", 7),
     ("version", "0"), ("more", 1)],
)  # fmt: skip
def test_those_of_another_machine_do_not_count_and_verbose_says_so(
    bundle: Path, recorded: dict[str, Any], ran: Ran, tmp_path: Path, where: str, value: object
) -> None:
    decisions = decided(recorded, bundle, DIRECT)
    decisions["tuned"][0]["tables"][0]["box"][where] = value
    np.save(tmp_path / "x.npy", images(2))
    done = ran(decisions, *files(tmp_path), "-v")
    assert (done.returncode, len(done.stderr.splitlines())) == (0, 1)
    assert "another machine" in done.stderr
    assert np.load(tmp_path / "y.npy").tobytes() == by_python(bundle, images(2), None, tmp_path)
    assert ran(decisions, *files(tmp_path)).stderr == ""


def test_those_of_another_bundle_do_not_count(bundle: Path, recorded: dict[str, Any], ran: Ran, tmp_path: Path) -> None:
    decisions = decided(recorded, bundle, DIRECT)
    decisions["tuned"][0]["plan_sha256"] = "0" * 64
    np.save(tmp_path / "x.npy", images(2))
    done = ran(decisions, *files(tmp_path), "-v")
    assert (done.returncode, "another bundle" in done.stderr) == (0, True)


@pytest.fixture
def exported(nndeploy_command: Callable[..., Any], bundle: Path, tmp_path: Path) -> Callable[..., Any]:
    """Returns what exports the bundle with decisions, and what the command answers."""

    def export(decisions: object, *more: str) -> Any:
        (tmp_path / "tuned.json").write_text(json.dumps(decisions))
        return nndeploy_command(
            "export", bundle, "-o", tmp_path / "program", "--decisions", tmp_path / "tuned.json", *more
        )

    return export


def test_an_exported_program_carries_them(
    exported: Callable[..., Any], bundle: Path, recorded: dict[str, Any], tmp_path: Path
) -> None:
    decisions, x = decided(recorded, bundle, DIRECT), images(2)
    np.save(tmp_path / "x.npy", x)
    assert exported(decisions).returncode == 0
    command = [str(tmp_path / "program"), "--threads", "1", "-v", *files(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "its decisions: counts for 1 set of shapes" in done.stderr) == (0, True)
    assert np.load(tmp_path / "y.npy").tobytes() == by_python(bundle, x, decisions, tmp_path)
    assert np.load(tmp_path / "y.npy").tobytes() != by_python(bundle, x, None, tmp_path / "rules")


def test_a_program_takes_a_file_in_the_place_of_those_that_it_carries(
    exported: Callable[..., Any], bundle: Path, recorded: dict[str, Any], tmp_path: Path
) -> None:
    x = images(2)
    np.save(tmp_path / "x.npy", x)
    assert exported(decided(recorded, bundle, DIRECT)).returncode == 0
    (tmp_path / "rules.json").write_text(json.dumps(decided(recorded, bundle, BY_RULE)))
    command = [str(tmp_path / "program"), "--threads", "1", "--decisions", tmp_path / "rules.json", *files(tmp_path)]
    assert subprocess.run(command, check=False).returncode == 0
    assert np.load(tmp_path / "y.npy").tobytes() == by_python(bundle, x, None, tmp_path / "rules")


@pytest.mark.parametrize("bytes_missing", [1, 17, 40])
def test_a_program_with_decisions_that_was_cut_is_damaged(
    exported: Callable[..., Any], bundle: Path, recorded: dict[str, Any], tmp_path: Path, bytes_missing: int
) -> None:
    assert exported(decided(recorded, bundle, DIRECT)).returncode == 0
    program = tmp_path / "program"
    program.write_bytes(program.read_bytes()[:-bytes_missing])
    done = subprocess.run([program, "--info"], capture_output=True, text=True, check=False)
    assert (done.returncode, "cut short" in done.stderr) == (65, True)


def test_no_program_carries_those_of_another_bundle_or_what_is_none(
    exported: Callable[..., Any], bundle: Path, recorded: dict[str, Any], tmp_path: Path
) -> None:
    decisions = decided(recorded, bundle, DIRECT)
    assert exported({"format": 1}).returncode == 65
    decisions["tuned"][0]["plan_sha256"] = "0" * 64
    done = exported(decisions)
    assert (done.returncode, "tuned.json: the decisions are for another bundle" in done.stderr) == (65, True)
    assert not (tmp_path / "program").exists()


@pytest.mark.parametrize("form", [("--library",), ("--for", "wasm"), ("--for", "html")])
def test_only_programs_carry_decisions(
    exported: Callable[..., Any], recorded: dict[str, Any], form: tuple[str, ...]
) -> None:
    done = exported(recorded, *form)
    assert (done.returncode, "--decisions cannot be used with" in done.stderr) == (2, True)


def changed(recorded: dict[str, Any], change: Callable[[dict[str, Any]], object]) -> str:
    data: dict[str, Any] = json.loads(json.dumps(recorded))
    change(data["tuned"][0])
    return json.dumps(data)


MALFORMED: dict[str, Callable[[dict[str, Any]], object]] = {
    "no tables": lambda plan: plan.update(tables=1),
    "another format": lambda plan: plan.update(format=2),
    "no box": lambda plan: plan["tables"][0].update(box=[]),
    "no steps": lambda plan: plan["tables"][0].update(steps=[]),
    "no shapes": lambda plan: plan["tables"][0].pop("shapes"),
    "not a shape": lambda plan: plan["tables"][0].update(shapes=[["2"]]),
    "a step by name": lambda plan: plan["tables"][0].update(steps={"conv": {"chunks": 1}}),
    "a step that is not there": lambda plan: plan["tables"][0].update(steps={"999": {"chunks": 1}}),
    "an unknown field": lambda plan: plan["tables"][0].update(steps={"0": {"colour": 1}}),
    "too much": lambda plan: plan["tables"][0].update(steps={"0": {"chunks": 65}}),
    "what no file may say": lambda plan: plan["tables"][0].update(steps={"0": {"rounding": 1}}),
}


@pytest.mark.parametrize("change", MALFORMED.values(), ids=MALFORMED)
def test_what_is_malformed_is_refused_in_one_line_by_both(bundle, recorded, ran, tmp_path, change) -> None:
    text = changed(recorded, change)
    done = ran(text, "--info")
    assert (done.returncode, len(done.stderr.splitlines())) == (65, 1)
    (tmp_path / "given.json").write_text(text)
    command = ["tune", str(bundle), "--threads", "1", "--cache", str(tmp_path / "cache")]
    assert run_command([*command, "--decisions", str(tmp_path / "given.json")]) == 65


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', '{"format": 2, "tuned": []}', "{}\0"])
def test_what_is_no_file_of_decisions_is_refused(ran: Ran, text: str) -> None:
    done = ran(text, "--info")
    assert (done.returncode, len(done.stderr.splitlines())) == (65, 1)
    assert "decisions" in done.stderr or "tuned choices" in done.stderr


def test_a_file_that_is_not_there_is_no_input(runner: Path, bundle: Path) -> None:
    done = subprocess.run([runner, bundle, "--decisions", "nowhere.json", "--info"], capture_output=True, check=False)
    assert done.returncode == 66
