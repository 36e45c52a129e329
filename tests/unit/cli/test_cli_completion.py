# SPDX-License-Identifier: Apache-2.0
"""The tab key: every command, option and value that can be known without running anything, and never a message.

What completes is asked twice: the commands themselves, as in a checkout, and what the build of a wheel writes of them.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from nndeploy.cli.help import completion_index
from nndeploy.cli.help.shell_completion import INSTALLED_BY, OurBash
from nndeploy.cli.main import COMMANDS, cli, run_command
from nndeploy.cli.options import value_types
from nndeploy.plugin.registry import backend_names
from nndeploy.target.known_targets import known_targets

BOXES = list(known_targets())


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the file that a wheel brings."""
    path = tmp_path_factory.mktemp("index") / "completion_index.json"
    completion_index.write_index(cli, path)
    return path


@pytest.fixture(params=["commands", "index"], autouse=True)
def root(request: pytest.FixtureRequest, index: Path, monkeypatch: pytest.MonkeyPatch) -> click.Command:
    """Returns what is completed from, which `completed` asks."""
    monkeypatch.setattr(completion_index, "INDEX", index)
    found = cli if request.param == "commands" else completion_index.indexed_command()
    assert found is not None
    monkeypatch.setitem(globals(), "ROOT", found)
    return found


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file of each kind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NNDEPLOY_STORE", str(tmp_path / "none"))  # whatever is installed on this machine
    monkeypatch.setattr("nndeploy.installed.bundle_store.MACHINE_STORE", tmp_path / "none")
    for name in ("a.nnd", "b b.nnd", "box.toml", "model.onnx", "photo.png", ".hidden.nnd"):
        (tmp_path / name).touch()
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "c.nnd").touch()
    return tmp_path


ROOT: click.Command = cli


def completed(*words: str) -> list[str]:
    """Returns what completes the last word."""
    found = ShellComplete(ROOT, {}, "nndeploy", "").get_completions(list(words[:-1]), words[-1])
    return [item.value for item in found]


@pytest.mark.parametrize("command", ["install", "installed", "rollback", "uninstall"])
def test_names_of_installed_bundles_are_completed(here: Path, command: str) -> None:
    for name in ("faces", "fast", "digits"):
        (here / "none" / name).mkdir(parents=True)
        (here / "none" / name / "state.json").touch()
    assert completed(command, "fa") == ["faces", "fast"]
    assert completed(command, "--store", str(here / "more"), "fa") == []


@pytest.mark.parametrize(("words", "values"), [
    (("",), list(COMMANDS)), (("com",), ["compile", "completion"]), (("--ver",), ["--version"]),
    (("inspect", "--h"), ["--html", "--here", "--help"]),
    *(((*command, *option), values) for command in (("backends",), ("compile", "m.onnx")) for option, values in (
        (("--target", ""), [*BOXES, "box.toml", "more/"]), (("--target", "rtx4"), ["rtx4090"]),
        (("--target=rtx4",), ["rtx4090"]),
    )),
    (("backends", "--target", "x86-64-v3+on"), ["x86-64-v3+onnxruntime"]),
    (("backends", "--target", "x86-64-v3+openvino+on"), ["x86-64-v3+openvino+onnxruntime"]),
    (("diff", ""), ["a.nnd", "b b.nnd", "more/"]), (("diff", "a.nnd", "more/"), ["more/c.nnd"]),
    (("diff", "./b"), ["./b b.nnd"]), (("diff", "."), [".hidden.nnd"]), (("diff", "no/such/"), []),
    (("diff", "~/mo"), ["~/more/"]),
    (("help", "pip"), ["pipelines"]), (("help", "tar"), ["targets"]), (("help", "reference/t"), ["reference/targets"]),
    (("compile", ""), ["model.onnx", "more/"]),
    (("compile", "m.onnx", "--backends", ""), backend_names()),
    (("compile", "m.onnx", "--backends", "openvino,onn"), ["openvino,onnxruntime"]),
    (("compile", "m.onnx", "--backends", "onnxruntime,onn"), []),
    (("compile", "m.onnx", "--without", "nat"), ["native"]),
    (("compile", "m.onnx", "--pin", "Conv_*=ope"), ["Conv_*=openvino"]),
    (("compile", "m.onnx", "--require", "nat"), ["native="]),
    (("compile", "m.onnx", "--target", "rtx40"), ["rtx4090"]),
    (("compile", "m.onnx", "--objective", "l"), ["latency"]),
    (("compile", "m.onnx", "--precision", "b"), ["bf16"]),
    (("compile", "m.onnx", "--config", ""), ["box.toml", "more/"]),
    (("compile", "m.onnx", "--image", "b"), ["box.toml"]),
    (("run", "a"), ["a.nnd"]),
    (("run", "--model", "faces=a"), ["faces=a.nnd"]),
    (("run", "a.nnd", "--device", "c"), ["cpu"]),
    (("run", "a.nnd", "--nan", "re"), ["reject"]),
    (("run", "--pipeline", "b"), ["box.toml"]),
    (("serve", "a"), ["a.nnd"]),
    (("serve", "faces=b"), ["faces=b b.nnd", "faces=box.toml"]),
    (("verify", "more/"), ["more/c.nnd"]),
    (("bench", "a.nnd", "--scenario", "off"), ["offline"]),
    (("pace", "a.nnd", "--target", "rtx40"), ["rtx4090"]),
    (("inspect", "b"), ["b b.nnd"]),
])  # fmt: skip
def test_commands_options_and_their_values_are_completed(here, monkeypatch, words, values) -> None:
    monkeypatch.setattr(value_types, "GPUS", here / "none")
    monkeypatch.setenv("HOME", str(here))
    assert completed(*words) == values


@pytest.mark.parametrize("path", [(name,) for name in COMMANDS] + [("key", "new"), ("cache", "gc"), ("farm", "worker")])
def test_the_index_says_of_each_command_what_the_command_says(index: Path, path: tuple[str, ...]) -> None:
    def told(command: click.Command | None) -> list[tuple[str, str, str | None]]:
        assert command is not None
        found = ShellComplete(command, {}, "nndeploy", "").get_completions([*path], "-")
        return [(item.type, item.value, item.help) for item in found]

    assert told(completion_index.indexed_command()) == told(cli)


def test_an_index_that_says_nothing_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion_index, "INDEX", tmp_path / "i.json")
    assert completion_index.indexed_command() is None
    for text in ("", "{}", "[1]", json.dumps({"params": [{}]})):
        (tmp_path / "i.json").write_text(text)
        assert completion_index.indexed_command() is None


@pytest.mark.parametrize("line", ["compile --ta", "compile m.onnx --target r", "run ", "compile m.onnx --backends o"])
def test_from_the_index_no_command_is_imported(index: Path, here: Path, line: str) -> None:
    script = """
import runpy, sys, pathlib
import nndeploy.cli.help.completion_index as index
index.INDEX = pathlib.Path(sys.argv.pop())
try:
    runpy.run_module("nndeploy", run_name="__main__")
finally:
    print(*sorted(name for name in sys.modules if name.startswith(("nndeploy.cli.", "numpy", "rich"))), file=sys.stderr)
"""
    asked = {**os.environ, "_NNDEPLOY_COMPLETE": "bash_complete", "COMP_LINE": f"nndeploy {line}"}
    done = subprocess.run([sys.executable, "-c", script, str(index)], env=asked, capture_output=True, text=True)
    assert done.stdout
    assert set(done.stderr.split()) == {
        "nndeploy.cli.help", "nndeploy.cli.help.completion_index", "nndeploy.cli.help.shell_completion",
        "nndeploy.cli.options", "nndeploy.cli.options.value_types",
    }  # fmt: skip


def test_what_completes_a_value_is_for_an_option_that_there_is() -> None:
    commands = [cli.get_command(click.Context(cli), name) for name in COMMANDS]
    names = {parameter.name for command in commands if command is not None for parameter in command.params}
    assert set(value_types.COMPLETED_BY) <= names


@pytest.mark.parametrize("num_gpus", [0, 2])
def test_devices_are_those_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, num_gpus: int) -> None:
    monkeypatch.setattr(value_types, "GPUS", tmp_path / "gpus")
    for number in range(num_gpus):
        (tmp_path / "gpus" / f"0000:{number}").mkdir(parents=True)
    items = value_types.DEVICE.shell_complete(None, None, "")  # type: ignore[arg-type]
    assert [item.value for item in items] == ["auto", "cpu", *(f"cuda:{number}" for number in range(num_gpus))]


def bash_line(line: str, breaks: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COMP_LINE", line)
    monkeypatch.setenv("COMP_WORDBREAKS", breaks)
    return OurBash(ROOT, {}, "nndeploy", "").complete().splitlines()


@pytest.mark.parametrize(("line", "breaks", "replies"), [
    ("nndeploy backends --target=rtx40", ":=", ["plain,rtx4090"]),
    ("nndeploy backends --target=rtx40", "", ["plain,--target=rtx4090"]),
    ("nndeploy diff 'b ", ":=", ["path,b b.nnd"]),
    ("nndeploy diff mo", ":=", ["path,more"]),
    ("nndeploy probe -o ", ":=", ["file,"]),
])  # fmt: skip
def test_bash_gets_what_it_puts_in_place_of_its_own_idea_of_a_word(here, monkeypatch, line, breaks, replies) -> None:
    assert bash_line(line, breaks, monkeypatch) == replies


@pytest.mark.parametrize(("instruction", "line"), [
    ("bash_complete", "nndeploy run '"), ("tcsh_complete", "nndeploy nonsense "),
    ("bash_bake", "nndeploy compile --config /no/such --"), ("x", ""), ("fish_complete", "nndeploy run '"),
])  # fmt: skip
def test_a_shell_gets_no_message_whatever_it_asks(instruction: str, line: str, tmp_path: Path) -> None:
    environment = {**os.environ, "_NNDEPLOY_COMPLETE": instruction, "COMP_LINE": line, "COMP_WORDS": line}
    done = subprocess.run([sys.executable, "-m", "nndeploy"], env=environment, capture_output=True, text=True)
    assert done.stderr == ""
    assert "rror" not in done.stdout


@pytest.mark.parametrize("shell", INSTALLED_BY)
def test_a_script_says_at_its_head_how_it_is_installed(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    assert run_command(["completion", shell]) == 0
    out = capsys.readouterr().out
    assert f"# {INSTALLED_BY[shell]}" in out.splitlines()[:2]
    assert "_NNDEPLOY_COMPLETE" in out
    assert out.startswith("#compdef nndeploy\n") == (shell == "zsh")


@pytest.fixture
def program(tmp_path: Path) -> dict[str, str]:
    """Returns an environment in which `nndeploy` is a command."""
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "nndeploy"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m nndeploy "$@"\n')
    command.chmod(0o755)
    python_path = os.pathsep.join(filter(None, sys.path))
    return {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": python_path, "HOME": "/"}


@pytest.mark.parametrize(("line", "replies"), [
    ("nndeploy comp", "compile completion"),
    ("nndeploy backends --target rtx", "rtx3090 rtx4090 rtx5090"),
    ("nndeploy diff a.nnd mo", "more"),
    ("nndeploy nonsense --x", ""),
])  # fmt: skip
def test_bash_itself_completes(here: Path, program: dict[str, str], line: str, replies: str) -> None:
    script = """
    source <(nndeploy completion bash)
    compopt() { :; }   # may only be called where readline is at work
    COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDS=($1) COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    complete -p nndeploy >/dev/null && _nndeploy_completion nndeploy
    echo "${COMPREPLY[*]}"
    """
    command = [shutil.which("bash") or "bash", "--norc", "-c", script, "bash", line]
    done = subprocess.run(command, cwd=here, env=program, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (f"{replies}\n", "")


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_takes_the_script(here: Path, program: dict[str, str]) -> None:
    script = 'autoload -U compinit; compinit -u -D; eval "$(nndeploy completion zsh)"; echo $_comps[nndeploy]'
    done = subprocess.run(["zsh", "-f", "-c", script], cwd=here, env=program, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("_nndeploy_completion\n", "")


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_itself_completes(here: Path, program: dict[str, str]) -> None:
    script = 'nndeploy completion fish | source; complete -C "nndeploy backends --target rtx"'
    program = {**program, "HOME": str(here)}
    done = subprocess.run(["fish", "-N", "-c", script], cwd=here, env=program, capture_output=True, text=True)
    assert done.stdout.split() == ["rtx3090", "rtx4090", "rtx5090"]


LIGHT = ("diff", "backends", "targets", "probe", "help", "completion")
"""Commands whose options are made of nothing that needs numpy."""
HEAVY = {"onnx", "onnx_ir", "onnxruntime", "openvino", "rich"}


def test_a_press_of_the_tab_key_loads_nothing_heavy() -> None:
    """In one process, the light commands first: what a command loads is there for those behind it too."""
    script = """
import os, sys
from nndeploy.cli.main import run_command
for name in sys.argv[1:]:
    os.environ["COMP_LINE"] = f"nndeploy {name} --"
    assert run_command([]) == 0
    print(name, *{module.partition(".")[0] for module in sys.modules}, file=sys.stderr)
"""
    names = sorted(COMMANDS, key=lambda name: name not in LIGHT)
    asked = {**os.environ, "_NNDEPLOY_COMPLETE": "bash_complete"}
    done = subprocess.run([sys.executable, "-c", script, *names], env=asked, capture_output=True, text=True)
    assert done.stdout.count("plain,--help") == len(names)
    loaded = {name: set(modules) for name, *modules in map(str.split, done.stderr.splitlines())}
    assert list(loaded) == names
    for name in names:
        assert loaded[name] & (HEAVY | ({"numpy"} if name in LIGHT else set())) == set(), name
