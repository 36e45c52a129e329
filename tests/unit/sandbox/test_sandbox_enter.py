# SPDX-License-Identifier: Apache-2.0
"""What a process may still do in a sandbox, and what it never may; a kernel that lacks a part is said to."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nndeploy.sandbox import enter, landlock
from nndeploy.sandbox.allowed import Sandbox, sandbox_from_text
from nndeploy.sandbox.enter import missing

PREFIX = """
import json, os, sys
from pathlib import Path
from nndeploy.sandbox.enter import enter_said
enter_said(sys.argv[1])
folder = Path(sys.argv[2])
def refused(call):
    try:
        call()
        return ""
    except OSError as err:
        return err.strerror
"""
needs_all = pytest.mark.skipif(bool(missing()), reason=f"this kernel has no {missing()}")


def said(sandbox: Sandbox | None, folder: Path, code: str) -> object:
    """Returns what `code`, run in a sandbox, printed as JSON."""
    text = "" if sandbox is None else sandbox.to_text()
    command = [sys.executable, "-I", "-c", PREFIX + code, text, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_sandbox_survives_its_text() -> None:
    for sandbox in (Sandbox(), Sandbox(("/a b", "/ü"), ("/c",), True, ("/d",))):
        assert sandbox_from_text(sandbox.to_text()) == sandbox
    assert Sandbox(("/a",), ("/b",)).covers(["/a", "/b"])
    assert not Sandbox(("/a",)).covers(["/a", "/c"])


@needs_all
def test_only_what_is_named_is_read_or_written(tmp_path: Path) -> None:
    for name in ("own", "named", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    code = """
attempts = {
    "read own": lambda: (folder / "own/file").read_text(), "write own": lambda: (folder / "own/new").write_text("x"),
    "move own": lambda: (folder / "own/new").rename(folder / "own/newer"),
    "read named": lambda: (folder / "named/file").read_text(), "list named": lambda: os.listdir(folder / "named"),
    "write named": lambda: (folder / "named/file").write_text("x"),
    "link named": lambda: os.link(folder / "named/file", folder / "own/link"),
    "remove named": lambda: (folder / "named/file").unlink(), "make in named": lambda: (folder / "named/new").mkdir(),
    "read other": lambda: (folder / "other/file").read_text(), "list other": lambda: os.listdir(folder / "other"),
    "link to other": lambda: ((folder / "own/away").symlink_to(folder / "other/file"), (folder / "own/away").open()),
    "itself": lambda: Path("/proc/self/status").read_text(), "null": lambda: Path("/dev/null").write_text("x"),
}
print(json.dumps([name for name, attempt in attempts.items() if not refused(attempt)]))
"""
    sandbox = Sandbox((str(tmp_path / "named"),), (str(tmp_path / "own"),))
    assert said(sandbox, tmp_path, code) == [
        "read own", "write own", "move own", "read named", "list named", "itself", "null"
    ]  # fmt: skip
    assert (tmp_path / "named/file").read_text() == "named"


@needs_all
def test_keys_among_packages_stay_hidden(tmp_path: Path) -> None:
    for name in ("package", "keys"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    code = """
from nndeploy.sandbox.enter import enter
from nndeploy.sandbox.allowed import Sandbox
sys.path.append(str(folder))
enter(Sandbox(hidden=(str(folder / "keys"),)))
print(json.dumps([refused((folder / name / "file").read_text) for name in ("package", "keys")]))
"""
    assert said(None, tmp_path, code) == ["", "Permission denied"]


@needs_all
def test_a_program_that_is_started_inside_is_inside(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    code = """
import subprocess
done = subprocess.run(["cat", folder / "secret"], capture_output=True, text=True)
print(json.dumps([done.returncode, done.stderr.rpartition(": ")[2].strip()]))
"""
    assert said(Sandbox(), tmp_path, code) == [1, "Permission denied"]
    assert said(None, tmp_path, code) == [0, ""]


@needs_all
def test_a_sandbox_inside_another_only_takes_away(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    code = """
from nndeploy.sandbox.enter import enter
from nndeploy.sandbox.allowed import Sandbox
enter(Sandbox((str(folder),), (str(folder),)))
print(json.dumps(refused(lambda: (folder / "secret").read_text())))
"""
    assert said(Sandbox(), tmp_path, code) == "Permission denied"


@needs_all
@pytest.mark.skipif(os.geteuid() != 0, reason="another account has none of these rights anyway")
def test_root_keeps_its_rights_over_files_alone(tmp_path: Path) -> None:
    code = """
import subprocess
rights = [line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapPrm")]
rights += [subprocess.run(["grep", "CapPrm", "/proc/self/status"], capture_output=True, text=True).stdout.split()[1]]
print(json.dumps([int(one, 16) & ~0b1111 for one in rights]))
"""
    assert said(Sandbox(), tmp_path, code) == [0, 0]


def test_a_kernel_without_a_part_is_said_to_lack_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "landlock_abi", lambda: 0)
    assert missing() == "Landlock"
    monkeypatch.setattr(enter, "has_seccomp", lambda: False)
    assert missing() == "Landlock and seccomp"
    code = """
from nndeploy.sandbox import enter as entering, landlock
from nndeploy.sandbox.allowed import Sandbox
landlock.landlock_abi, entering.has_seccomp = lambda: 0, lambda: False
entering.enter(Sandbox())
print(json.dumps(refused(lambda: os.listdir(folder))))
"""
    assert said(None, tmp_path, code) == ""


@needs_all
@pytest.mark.parametrize("abi", range(1, landlock.landlock_abi() + 1))
def test_an_older_landlock_keeps_to_what_it_knows(tmp_path: Path, abi: int) -> None:
    (tmp_path / "own").mkdir()
    code = f"""
from nndeploy.sandbox import landlock
from nndeploy.sandbox.enter import enter
from nndeploy.sandbox.allowed import Sandbox
landlock.landlock_abi = lambda: {abi}
enter(Sandbox(writes=(str(folder / "own"),)))
print(json.dumps([refused(lambda: os.listdir(folder)), refused(lambda: (folder / "own/x").write_text("x"))]))
"""
    assert said(None, tmp_path, code) == ["Permission denied", ""]
