# SPDX-License-Identifier: Apache-2.0
"""Whatever a command writes: through a link that the user named and owns, and into nothing else that stands there."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests_flow_bundles import write_double

from nndeploy.cli.main import run_command

RUN = ["run", "m.nnd", "-i", "x.npz"]
RESUMED = ["run", "m.nnd", "-i", "x.jsonl", "--resume", "-o"]
NAMED = {
    "y.npz": [*RUN, "-o", "y.npz"], "y.jsonl": [*RUN, "-o", "y.jsonl"], "resumed.jsonl": [*RESUMED, "resumed.jsonl"],
    "trace.json": [*RUN, "--trace", "trace.json"], "metrics.json": [*RUN, "--metrics", "metrics.json"],
    "box.toml": ["probe", "-o", "box.toml"], "page.html": ["inspect", "m.nnd", "--html", "page.html"],
}  # fmt: skip
"""A file, and the command that is told to write it: a link there is written through if it is the user's own."""
IN_A_FOLDER = {"out/000000_x.npz": [*RUN, "-o", "out/"], "out/nndeploy-run.1": ["help", "--man", "out"]}
"""A file, and the command that makes it in a folder: what stood there is replaced, and what a link leads to stays."""
REFUSED = {
    "signed.nnd": ["sign", "signed.nnd", "--key", "own.key", "--release", "1.0.0"],
    "new.key": ["key", "new", "new"],
    "new.pub": ["key", "new", "new"],
    "wheels": ["wheelhouse", "--for", "x86_64", "-o", "wheels"],
    "a.jsonl.part": [*RESUMED, "a.jsonl"],
    "a.jsonl.resume": [*RESUMED, "a.jsonl"],
    "out/.nndeploy-resume": [*RESUMED, "out/"],
    "store/faces/lock": ["install", "faces", "m.nnd"],
}
"""A file, and a command that will not write where it is a link."""
NO_SECOND_NAME = ("new.key", "new.pub", "a.jsonl.part", "a.jsonl.resume", "out/.nndeploy-resume")
"""Where a second name of another's file is refused too; the others are replaced, or nothing is written into them."""
CANNOT_CREATE = 73
Plant = Callable[[Path, Path], None]


def a_link(path: Path, victim: Path) -> None:
    path.symlink_to(victim)


def a_second_name(path: Path, victim: Path) -> None:
    os.link(victim, path)


@pytest.fixture
def victim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns somebody's file, beside the working folder."""
    here = tmp_path / "here"
    (here / "out").mkdir(parents=True)
    (here / "store" / "faces").mkdir(parents=True)
    monkeypatch.chdir(here)
    monkeypatch.setenv("NNDEPLOY_STORE", str(here / "store"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    write_double(here / "m.nnd")
    np.savez("x.npz", image=np.ones((1, 3), np.float32))
    (here / "x.jsonl").write_text('{"image": [[1, 2, 3]]}\n' * 3)
    (here / "digits.onnx").write_bytes(b"")
    assert run_command(["key", "new", "own"]) == 0
    victim = tmp_path / "victim"
    victim.write_bytes((here / "m.nnd").read_bytes())
    return victim


def is_untouched(victim: Path) -> bool:
    """Returns whether it is as the fixture made it; `m.nnd` may be a link by now."""
    return victim.read_bytes() == write_double(Path("again.nnd")).read_bytes()


@pytest.mark.parametrize(
    ("plant", "name", "command"),
    [(a_second_name, *one) for one in (NAMED | IN_A_FOLDER).items()] + [(a_link, *one) for one in IN_A_FOLDER.items()],
)
def test_what_stands_there_is_replaced_and_never_written_into(name, command, plant, victim) -> None:
    plant(Path(name), victim)
    assert run_command(command) == 0
    assert is_untouched(victim)
    assert Path(name).stat().st_ino != victim.stat().st_ino
    assert Path(name).is_file()
    assert not Path(name).is_symlink()


@pytest.mark.parametrize("leads", ["to a file", "to a link", "nowhere"])
@pytest.mark.parametrize(("name", "command"), NAMED.items(), ids=NAMED)
def test_a_link_of_ones_own_is_written_through(name, command, leads, victim) -> None:
    target = victim.with_name("target")
    if leads == "to a link":
        target.symlink_to(victim.name)
    else:
        target.write_bytes(b"" if leads == "to a file" else b"gone")
        if leads == "nowhere":
            target.unlink()
    Path(name).symlink_to(target)
    assert run_command(command) == 0
    assert Path(name).is_symlink()
    assert target.is_symlink() == (leads == "to a link")
    assert target.stat().st_size > 0
    assert leads != "to a link" or not is_untouched(victim)
    assert not [path for path in target.parent.iterdir() if path.name.startswith(".nndeploy")]


@pytest.mark.parametrize(("name", "command"), NAMED.items(), ids=NAMED)
def test_a_link_of_another_user_is_refused(name, command, victim, monkeypatch) -> None:
    Path(name).symlink_to(victim)
    if os.geteuid() == 0:
        os.chown(name, 4321, -1, follow_symlinks=False)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 4321)
    assert run_command(command) == CANNOT_CREATE
    assert is_untouched(victim)


@pytest.mark.parametrize(("name", "command"), REFUSED.items(), ids=REFUSED)
def test_a_link_is_refused(name, command, victim, capsys) -> None:
    path = Path(name)
    path.unlink(missing_ok=True)
    path.symlink_to(victim)
    assert run_command(command) == CANNOT_CREATE
    assert is_untouched(victim)
    assert path.is_symlink()
    assert capsys.readouterr().err.count("nndeploy: error[cannot-create]: ") == 1


@pytest.mark.parametrize("name", NO_SECOND_NAME)
def test_a_second_name_of_a_file_is_refused(name, victim) -> None:
    os.link(victim, name)
    assert run_command(REFUSED[name]) == CANNOT_CREATE
    assert is_untouched(victim)


def test_the_state_of_an_installed_name_is_replaced_too(victim) -> None:
    assert run_command(["install", "faces", "m.nnd"]) == 0
    state, other = Path("store/faces/state.json"), victim.with_name("state.json")
    state.rename(other)
    before = other.read_bytes()
    state.symlink_to(other)
    assert run_command(["install", "faces", "m.nnd", "--max-latency", "60s"]) == 0
    assert other.read_bytes() == before
    assert not state.is_symlink()
