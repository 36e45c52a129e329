# SPDX-License-Identifier: Apache-2.0
"""A standard output that cannot be written: a command that only tells fails, one that changes something has done it."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import onnx.parser
import pytest
from tests_flow_bundles import write_double

from nndeploy.build_cache.local_cache import FOLDERS
from nndeploy.cli.main import cli, run_command
from nndeploy.cli.standard_streams import give_up_output, output_to
from nndeploy.installed.bundle_store import store_at
from nndeploy.trust.trust_store import trust_store

RELU = '<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => (float[3] y) { y = Relu(x) }'
IMAGES = """<ir_version: 8, opset_import: ["": 18]> g (float[1,3,8,8] x) => (float[1,3] y) {
  axes = Constant<value_ints = [2, 3]>() y = ReduceMax<keepdims = 0>(x, axes) }"""
MODEL, FLEET = "relu.onnx", '[[models]]\nfiles = ["*.onnx"]\n[report]\njson = "batch.json"\n'
REFERENCE = "oci://127.0.0.1:1/m:1"
STRAY = f"cache/cas/aa/{'a' * 64}"


def at(name: str) -> Callable[[], Any]:
    """Returns what looks at the content of a file, None where there is none."""
    return lambda: Path(name).read_bytes() if Path(name).exists() else None


def current() -> Any:
    store = store_at(None)
    return {name: store.state(name).current.sha256 for name in store.names()}


CHANGES: dict[str, tuple[tuple[str, ...], Callable[[], Any]]] = {
    "compile": ((MODEL, "-o", "new.nnd", "--backends", "reference", "--objective", "priority"), at("new.nnd")),
    "new": (("classify", "--model", "images/net.onnx", "-o", "new.toml"), at("new.toml")),
    "batch": (("fleet.toml", "--collect"), at("batch.json")),
    "farm ca": (("certs",), at("certs/ca.pem")),
    "sign": (("one.nnd", "--key", "farm.key", "--release", "2.0"), at("one.nnd")),
    "key new": (("other",), at("other.pub")),
    "key trust": (("farm.pub", "--name", "again"), trust_store),
    "key revoke": (("farm",), trust_store),
    "key floor": (("m", "1.4"), trust_store),
    "key need": (("code=2",), trust_store),
    "install": (("faces", "three.nnd"), current),
    "rollback": (("faces",), current),
    "uninstall": (("faces",), current),
    "export": (("one.nnd", "-o", "program"), at("travelled")),
    "push": (("one.nnd", REFERENCE), at("travelled")),
    "pull": ((REFERENCE, "-o", "pulled.nnd"), at("travelled")),
    "cache gc": (("--cache-dir", "cache"), at(STRAY)),
    "cache verify": (("--cache-dir", "cache"), at(STRAY)),
    "wheelhouse": (("--for", "x86_64", "-o", "travelled"), at("travelled")),
}
"""Command that changes something -> its arguments here, and what looks at what it changes."""
CODES = {"batch": 75, "cache verify": 1}
"""How they end where that is not 0: no job is built, and a file was damaged."""
READS = (
    "run", "bench", "tune", "pace", "inspect", "verify", "installed", "doctor", "diff", "backends", "targets", "probe",
    "help", "completion", "top", "serve", "farm scheduler", "farm worker", "key list", "cache stats",
)  # fmt: skip
"""Commands that tell or measure; what some of them write beside that is the same if they are called again."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A folder with all that the commands take; what would need a network does nothing but leave a file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NNDEPLOY_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def travelled(*_: object, **__: object) -> Any:
        Path("travelled").touch()
        return moved

    moved = SimpleNamespace(
        reference="r", num_members=1, fetched_bytes=0, local_bytes=0, kept_bytes=0, sent_bytes=0, present_bytes=0,
        key_ids=(), wheels=(), num_bytes=0, bundle_bytes=0, left_out=(),
    )  # fmt: skip
    monkeypatch.setattr("nndeploy.runtime.exported_program.export_program", travelled)
    monkeypatch.setattr("nndeploy.registry.push.push", travelled)
    monkeypatch.setattr("nndeploy.registry.pull.pull", travelled)
    monkeypatch.setattr("nndeploy.wheelhouse.gather.gather", lambda *_: travelled().wheels)
    monkeypatch.setattr("nndeploy.wheelhouse.here.check_can_gather", lambda: None)
    for number, name in enumerate(("one", "two", "three")):
        write_double(Path(f"{name}.nnd"), members={"note": bytes([number])})
    Path("images").mkdir()
    for path, text in ((MODEL, RELU), ("images/net.onnx", IMAGES)):
        Path(path).write_bytes(onnx.parser.parse_model(text).SerializeToString())
    Path("fleet.toml").write_text(FLEET)
    for folder in FOLDERS:
        Path("cache", folder).mkdir(parents=True)
    Path(STRAY).parent.mkdir()
    Path(STRAY).touch()
    os.utime(STRAY, (0, 0))
    for line in ("key new farm", "key trust farm.pub", "install faces one.nnd", "install faces two.nnd"):
        assert run_command(line.split()) == 0
    capsys.readouterr()
    return tmp_path


def lost(kind: str) -> int:
    """Returns a descriptor that nothing can be written to: a full disk, one that is closed, or no reader."""
    if kind == "full":
        return os.open("/dev/full", os.O_WRONLY)
    if kind == "closed":
        return os.open(os.devnull, os.O_RDONLY)
    reading, writing = os.pipe()
    os.close(reading)
    return writing


@pytest.fixture
def losing(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Returns a function: kind of loss, arguments -> the exit code of the command whose output is lost."""

    def run(kind: str, *arguments: str) -> int:
        with output_to(lost(kind)) as output, monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", output)
            code = run_command(list(arguments))
            give_up_output()
        return code

    return run


def leaves(command: click.Command, name: str = "") -> Iterator[str]:
    if not isinstance(command, click.Group):
        yield name
        return
    context = click.Context(command)
    for one in command.list_commands(context):
        found = command.get_command(context, one)
        yield from leaves(found, f"{name} {one}".strip())


def test_of_every_command_it_is_known_whether_it_changes_something() -> None:
    assert sorted((*CHANGES, *READS)) == sorted(leaves(cli))


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_that_is_made_is_no_failure(here, losing, capsys, name) -> None:
    arguments, look = CHANGES[name]
    before = look()
    assert losing("full", *name.split(), *arguments) == CODES.get(name, 0)
    assert look() != before
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["full", "closed", "gone"])
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_rollback_is_made_once_whatever_becomes_of_its_answer(here, losing, kind, more) -> None:
    first = store_at(None).state("faces").previous
    for _ in range(2):
        assert losing(kind, "rollback", "faces", "--to", first.sha256[:8], *more) == 0
        assert store_at(None).state("faces").current == first


@pytest.mark.parametrize(("kind", "code"), [("full", 74), ("closed", 74), ("gone", 141)])
@pytest.mark.parametrize("arguments", ["installed", "key list", "compile relu.onnx --dump-config", "rollback --help"])
def test_a_command_that_only_tells_fails(here, losing, kind, code, arguments) -> None:
    assert losing(kind, *arguments.split()) == code
