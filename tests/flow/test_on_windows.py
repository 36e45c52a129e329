# SPDX-License-Identifier: Apache-2.0
"""Bundles on Windows, by wine where it is: the bits and the codes of the program for Linux, and the DLL."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nndeploy_kernels import build_systems
from nndeploy_kernels.build import level_here
from nndeploy_kernels.build_runtime import RUNTIME
from test_without_python import REPEATED, assert_same_bits, by_python, model_of, several

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not shutil.which("wine"), reason="no wine (Debian: wine64)")]

ROOT = Path(__file__).parents[2]
STRANGE = "Größe 数字"
"""What no code page of Windows holds together."""
MODELS = ("fsmn_vad_online", "micro_kws_qdq", "nnsplit_en", "silero_vad_v5", "ultraface_rfb320", "ppocr_det_mobile_v2")

Wine = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture(scope="module")
def wine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wine]:
    """Returns what runs a program of Windows in a Windows of its own."""
    environment = {**os.environ, "WINEPREFIX": str(tmp_path_factory.mktemp("wine")), "WINEDEBUG": "-all"}
    subprocess.run(["wineboot", "-i"], env=environment, capture_output=True, check=True)

    def run(*words: object, **options: Any) -> "subprocess.CompletedProcess[bytes]":
        command = ["wine", *map(str, words)]
        return subprocess.run(command, env=environment, capture_output=True, check=False, timeout=300, **options)

    yield run
    subprocess.run(["wineserver", "-k"], env=environment, check=False)


@pytest.fixture(scope="module")
def windows_runner() -> Path:
    return build_systems.build_system_runner(build_systems.WINDOWS)


@pytest.fixture(scope="module")
def windows_digits(windows_runner: Path, digits: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The digits behind the program, in a folder of a name of many alphabets."""
    from nndeploy.cli.main import run_command

    program = tmp_path_factory.mktemp("digits") / STRANGE / "digits.exe"
    program.parent.mkdir()
    assert run_command(["export", str(digits), "-o", str(program), "--for", "windows", "--verify"]) == 0
    return program


def path_in_wine(path: Path) -> str:
    return f"Z:{path}"


def ran(wine: Wine, command: Sequence[object], inputs: dict[str, Any], folder: Path, *more: str) -> dict[str, Any]:
    """Returns the outputs that a program of one bundle writes."""
    for name, array in inputs.items():
        np.save(folder / f"{name}.npy", array)
    given = [word for name in inputs for word in ("-i", f"{name}=@{path_in_wine(folder / name)}.npy")]
    done = wine(*command, *given, "-o", path_in_wine(folder / "out"), *more)
    assert (done.returncode, done.stderr) == (0, b"")
    return {path.stem: np.load(path) for path in (folder / "out").iterdir()}


@pytest.mark.parametrize("threads", ["1", "3"])
def test_an_exported_program_gives_the_bits_of_python(wine, windows_digits, digits, tmp_path, threads) -> None:
    images = np.random.default_rng(5).uniform(0, 16, (5, 1, 8, 8)).astype(np.float32)
    found = ran(wine, [windows_digits], {"image": images}, tmp_path, "--threads", threads)
    assert_same_bits(found, by_python(digits, {"image": images}))


def test_the_level_is_the_one_that_linux_has(wine, windows_digits) -> None:
    done = wine(windows_digits, "--info")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.splitlines()[0].decode() == f"digits, kernels for {level_here().name}"


def test_values_of_all_types_pass_as_in_python(wine, windows_runner, compiled, tmp_path) -> None:
    bundle, inputs = several(compiled)
    found = ran(wine, [windows_runner, path_in_wine(bundle)], inputs, tmp_path)
    assert_same_bits(found, by_python(bundle, inputs))


def test_a_bundle_of_a_strange_name_is_run_and_so_are_compressed_weights(wine, windows_runner, compiled, here) -> None:
    weights = np.tile(np.random.default_rng(3).standard_normal(8).astype(np.float32), (512, 64))
    bundle = compiled(model_of(REPEATED, weights))
    (here / STRANGE).mkdir()
    shutil.copyfile(bundle, here / STRANGE / f"{STRANGE}.nnd")
    np.save(here / f"{STRANGE}.npy", np.random.default_rng(4).standard_normal((1, 512)).astype(np.float32))
    done = wine(windows_runner, rf"{STRANGE}\{STRANGE}.nnd", "-i", f"{STRANGE}.npy", "-o", f"{STRANGE}/of")
    assert (done.returncode, done.stderr) == (0, b"")
    inputs = {"x": np.load(here / f"{STRANGE}.npy")}
    assert_same_bits({"y": np.load(here / STRANGE / "of" / "y.npy")}, by_python(bundle, inputs))


@pytest.mark.parametrize("name", MODELS)
def test_real_models_give_the_bits_of_the_program_for_linux(
    wine, runner, windows_runner, compiled, models_folder, tmp_path, name
) -> None:
    import nndeploy

    bundle = compiled(models_folder / f"{name}.onnx")
    with nndeploy.load_bundle(bundle, threads=1) as program:
        inputs = dict(program.bundle.values(program.manifest.goldens[0].inputs))
    found = ran(wine, [windows_runner, path_in_wine(bundle)], inputs, tmp_path, "--threads", "2")
    given = [word for key in inputs for word in ("-i", f"{key}=@{tmp_path / key}.npy")]
    subprocess.run([runner, bundle, *given, "-o", tmp_path / "linux"], check=True)
    assert_same_bits(found, {path.stem: np.load(path) for path in (tmp_path / "linux").iterdir()})


def test_a_program_verifies_its_results(wine, windows_digits) -> None:
    done = wine(windows_digits, "--verify")
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["-i", "image.npy"], 0), ([], 65), (["-i", "nowhere.npy"], 66), (["--threads", "0"], 2), (["--wrong"], 2),
        (["-i", "large.npy"], 65), (["-i", "text.npy"], 65), (["-i", "."], 66), (["-i", "image=image.npy"], 2),
        (["-i", "image.npy", "-o", "image.npy"], 73), (["--help"], 0), (["-i", "image.npy", "--bench", "0.01"], 0),
        (["-i", "image.npy", "-o", f"{STRANGE}.jsonl"], 0), (["-i", "image.npy", "--json"], 0),
    ],
)  # fmt: skip
def test_a_program_ends_as_the_one_for_linux(wine, windows_digits, digits, nndeploy_command, here, words, code) -> None:
    np.save("image.npy", np.zeros((1, 1, 8, 8), np.float32))
    np.save("large.npy", np.zeros((1, 1, 9, 8), np.float32))
    (here / "text.npy").write_text("no array")
    done = wine(windows_digits, *words)
    assert nndeploy_command("export", digits, "-o", "digits").returncode == 0
    on_linux = subprocess.run([here / "digits", *words], capture_output=True, check=False)
    assert done.returncode == on_linux.returncode == code, done.stderr
    assert len(done.stderr.splitlines()) == (code != 0)
    if code in (2, 65):  # of others the reason is the system's
        assert done.stderr.replace(b"digits.exe", b"digits") == on_linux.stderr


@pytest.mark.parametrize(
    ("content", "code"), [(None, 66), (b"", 65), (b"PK" + bytes(200), 65), ("cut", 65), ("damaged", 65)]
)
def test_what_is_no_whole_bundle_is_refused(wine, runner, windows_runner, digits, here, content, code) -> None:
    data = digits.read_bytes()
    if content == "cut":
        content = data[: len(data) // 2]
    if content == "damaged":
        content = data[:-5000] + bytes([data[-5000] ^ 1]) + data[-4999:]
    if content is not None:
        (here / "m.nnd").write_bytes(content)
    done = wine(windows_runner, "m.nnd", "--info")
    on_linux = subprocess.run([runner, "m.nnd", "--info"], capture_output=True, check=False)
    assert done.returncode == on_linux.returncode == code
    assert done.stderr.replace(b"nndeploy-run.exe", b"nndeploy-run") == on_linux.stderr


def test_a_program_that_was_cut_says_so(wine, windows_digits, tmp_path) -> None:
    data = windows_digits.read_bytes()
    (tmp_path / "cut.exe").write_bytes(data[: len(data) - 3000])
    done = wine(tmp_path / "cut.exe", "--info")
    assert (done.returncode, len(done.stderr.splitlines())) == (65, 1)


def test_lines_go_through_pipes_as_bytes(wine, runner, windows_runner, digits) -> None:
    lines = b'{"image": [[[[0,0,0,0,0,0,0,0]]]]}\n' + b'{"image": [[' + b",".join([b"[[1,2,3,4,5,6,7,8]]"] * 8) + b"]]}"
    words = (digits, "-i", "-", "-o", "-")
    done = wine(windows_runner, path_in_wine(digits), *words[1:], input=lines)
    on_linux = subprocess.run([runner, *words], input=lines, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (on_linux.returncode, on_linux.stdout)
    assert b"\r" not in done.stdout


def test_a_program_of_ones_own_takes_the_dll_with_a_bundle_inside(wine, nndeploy_command, digits, here) -> None:
    library, imports = build_systems.build_windows_library()
    assert nndeploy_command("export", digits, "-o", "digits.lib", "--library", "--for", "windows").returncode == 0
    shutil.copyfile(library, here / library.name)
    source = ROOT / "examples" / "c" / "embedded_digits.c"
    flags = ["-target", build_systems.WINDOWS.target, "-O2", "-s", "-fno-sanitize=all", "-I", str(RUNTIME), "-I", "."]
    command = [sys.executable, "-m", "ziglang", "cc", *flags, source, "digits.lib", imports, "-o", "inside.exe"]
    subprocess.run(command, check=True, capture_output=True)
    done = wine(here / "inside.exe")
    assert (done.returncode, done.stderr) == (0, b"")
    image = np.zeros((1, 1, 8, 8), np.float32)
    image[..., 3:5] = 16
    (scores,) = by_python(digits, {"image": image})["probabilities"]
    assert done.stdout.decode().split() == [word for i in range(10) for word in (str(i), f"{scores[i]:.4f}")]


def test_what_was_made_twice_is_the_same(windows_runner) -> None:
    library, _ = build_systems.build_windows_library()
    before = [windows_runner.read_bytes(), library.read_bytes()]
    for one in (windows_runner, library):
        one.with_name(f".{one.name}.key").unlink()
    again = [build_systems.build_system_runner(build_systems.WINDOWS), build_systems.build_windows_library()[0]]
    assert [one.read_bytes() for one in again] == before
