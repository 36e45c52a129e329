# SPDX-License-Identifier: Apache-2.0
"""What people type who know other tools, or slip: each gets one line with what to do, and the right exit code.

The table is the test: what is typed, the exit code, and nouns that the answer holds.
"""

import zipfile
from pathlib import Path

import pytest

from nndeploy.cli.help import other_words
from nndeploy.cli.main import COMMANDS

TYPED = [
    # commands of docker, oras, cargo, uv, trtexec, polygraphy, optimum-cli
    ("list", 2, ["installed", "inspect"]),
    ("ls", 2, ["installed"]),
    ("info m.nnd", 2, ["nndeploy inspect"]),
    ("remove digits", 2, ["uninstall"]),
    ("rm digits", 2, ["uninstall"]),
    ("rmi digits", 2, ["uninstall"]),
    ("images", 2, ["nndeploy installed"]),
    ("clean", 2, ["nndeploy cache gc"]),
    ("cache clean", 2, ["nndeploy cache gc"]),
    ("update digits", 2, ["nndeploy install"]),
    ("status", 2, ["nndeploy doctor"]),
    ("version", 2, ["nndeploy --version"]),
    ("build m.onnx", 2, ["nndeploy compile"]),
    ("help build", 2, ["nndeploy compile"]),
    ("convert m.onnx", 2, ["nndeploy compile"]),
    ("quantize m.onnx", 2, ["nndeploy compile", "--quantise int8"]),
    ("optimize m.onnx", 2, ["nndeploy compile"]),
    ("login registry", 2, ["docker login", "--password-stdin"]),
    ("tag a b", 2, ["nndeploy push"]),
    ("frobnicate", 2, ["nndeploy --help"]),
    ("comple m.onnx", 2, ["did you mean 'compile'"]),
    ("cache frob", 2, ["nndeploy cache --help"]),
    # options of trtexec, benchmark_app, Triton
    ("-V", 2, ["nndeploy --version"]),
    ("-v", 2, ["nndeploy --version"]),
    ("compile m.onnx --fp16", 2, ["--precision bf16", "--quantise int8"]),
    ("compile m.onnx --int8", 2, ["--quantise int8", "--samples"]),
    ("compile m.onnx --precision fp16", 2, ["--precision bf16", "--quantise int8"]),
    ("compile m.onnx --precision=int8", 2, ["--quantise int8"]),
    ("compile --onnx=m.onnx --saveEngine=m.nnd", 2, ["nndeploy compile MODEL"]),
    ("compile m.onnx --saveEngine=m.nnd", 2, ["-o BUNDLE"]),
    ("--onnx=m.onnx --saveEngine=m.nnd", 2, ["nndeploy compile MODEL"]),
    ("bench --loadEngine=m.nnd", 2, ["nndeploy bench BUNDLE"]),
    ("bench -m m.nnd", 2, ["nndeploy bench BUNDLE"]),
    ("bench m.nnd -d CPU", 2, ["--device"]),
    ("bench m.nnd -niter 100", 2, ["-niter", "--iterations"]),
    ("bench m.nnd -nireq=4", 2, ["-nireq", "--inflight"]),
    ("bench m.nnd -hint latency", 2, ["-hint", "--objective"]),
    ("bench m.nnd --streams 4", 2, ["--scenario", "--inflight"]),
    ("serve m.nnd --port 9000", 2, ["--http 127.0.0.1:PORT"]),
    ("compile digits.onnx -o q.nnd --quantize int8 --samples none", 66, ["none"]),
    ("compile m.onnx --quantize int7", 2, ["int8", "int4"]),
    # files
    ("compile digits.onx -o x.nnd", 66, ["digits.onx", "did you mean 'digits.onnx'"]),
    ("run digts.nnd", 66, ["did you mean 'digits.nnd'"]),
    ("compile https://example.com/m.onnx -o x.nnd", 2, ["https://example.com/m.onnx", "curl"]),
    ("run oci://registry/foo:1", 2, ["nndeploy pull"]),
    ("compile torch.pt -o x.nnd", 65, ["PyTorch", "torch.onnx.export"]),
    ("inspect torch.pt", 65, ["torch.pt", "PyTorch", "torch.onnx.export"]),
    ("inspect digits.onx", 66, ["did you mean 'digits.onnx'"]),
    ("inspect digits.onnx --here", 2, ["--here", "nndeploy compile digits.onnx"]),
    ("batch digits.onnx", 65, ["digits.onnx", "a model", "fleet file"]),
    ("batch braces.toml --plan", 66, ["{a,b}.onnx", "braces"]),
    ("run digits.nnd batch.npz", 2, ["batch.npz", "--input"]),
    ("serve digits.onnx", 65, ["digits.onnx", "nndeploy compile digits.onnx"]),
    # places
    ("compile digits.onnx -o x.nnd --target rtx4080", 2, ["8.9", "rtx4090"]),
    ("compile digits.onnx -o x.nnd --target GeForce-RTX-3060", 2, ["8.6", "rtx3090"]),
    ("compile digits.onnx -o x.nnd --target raspberry", 2, ["did you mean 'raspberry-pi-5'"]),
    (
        "compile digits.onnx -o x.nnd --backends native,onnxruntime --objective priority --target riscv.toml", 1,
        ["riscv64", ".toml+onnxruntime"],
    ),
    ("push digits.nnd https://registry/foo:1", 2, ["oci://"]),
    ("push digits.nnd localhost:1/foo", 2, ["tag"]),
    ("push digits.nnd localhost:1/foo:1", 69, ["oci://localhost:1/foo:1", "cannot be reached"]),
    ("pull localhost:1/foo:1 -o x.nnd", 69, ["oci://localhost:1/foo:1", "cannot be reached"]),
    ("install foo localhost:1/foo:1", 69, ["oci://localhost:1/foo:1", "cannot be reached"]),
    ("install foo nothing.nnd", 66, ["nothing.nnd"]),
    # gates
    (
        "compile digits.onnx --dry-run --backends onnxruntime --max-fallback 1%", 1,
        ["100.0%", "--backends native,onnxruntime"],
    ),
    (
        "compile digits.onnx --dry-run --require OnnxRuntime=99% --backends OnnxRuntime,Native", 1,
        ["onnxruntime", "--objective"],
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with the files that people name."""
    import nndeploy

    folder = tmp_path_factory.mktemp("typed")
    digits = Path(__file__).resolve().parents[3] / "examples" / "digits" / "digits.onnx"
    (folder / "digits.onnx").write_bytes(digits.read_bytes())
    options = nndeploy.CompileOptions(backends=("native",), objective="priority")
    nndeploy.compile_model(folder / "digits.onnx", folder / "digits.nnd", options)
    with zipfile.ZipFile(folder / "torch.pt", "w") as archive:
        archive.writestr("archive/data.pkl", b"pickled")
        archive.writestr("archive/data/0", bytes(1 << 17))
    (folder / "riscv.toml").write_text('name = "riscv"\narch = "riscv64"\n')
    (folder / "braces.toml").write_text('[[models]]\nfiles = ["{a,b}.onnx"]\n[targets]\nnames = ["host"]\n')
    return folder


@pytest.mark.parametrize(("typed", "code", "nouns"), TYPED, ids=[typed for typed, _, _ in TYPED])
def test_what_people_type_is_answered(place, nndeploy_command, monkeypatch, tmp_path, typed, code, nouns) -> None:
    monkeypatch.setenv("NNDEPLOY_STORE", str(tmp_path))
    monkeypatch.setattr("nndeploy.registry.connection.FIRST_WAIT_SECONDS", 0.0)
    done = nndeploy_command(*typed.split(), cwd=place)
    told = done.stderr.splitlines()[-1]
    assert done.returncode == code, done.stderr
    assert told.startswith("nndeploy: error[")
    assert [noun for noun in nouns if noun not in told] == [], told
    assert "listening" not in done.stdout


@pytest.mark.parametrize("device", ["CPU", "Auto"])
def test_a_device_may_be_written_in_any_case(place, nndeploy_command, device) -> None:
    assert nndeploy_command("verify", "digits.nnd", "--device", device, cwd=place).returncode == 0


@pytest.mark.parametrize("device", ["gpu", "CUDA", "cuda:0"])
def test_a_gpu_has_several_names(place, nndeploy_command, device) -> None:
    done = nndeploy_command("run", "digits.nnd", "--device", device, cwd=place)
    assert done.returncode == 69
    assert "cuda:0" in done.stderr


def test_the_commands_that_the_table_names_are_there() -> None:
    named = [
        words for text in (*other_words.COMMANDS.values(), *other_words.OPTIONS.values()) for words in [text.split()]
    ]
    commands = {words[i + 1].strip(",;:") for words in named for i in range(len(words) - 1) if words[i] == "nndeploy"}
    assert {one for one in commands if not one.startswith("-")} <= {*COMMANDS}
    assert not {name for name in other_words.COMMANDS if name in COMMANDS}
