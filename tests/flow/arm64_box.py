# SPDX-License-Identifier: Apache-2.0
"""A box of the other architecture on this machine: Debian for arm64 under qemu.

Its programs, and the children that these start, run in a namespace of their own: there the kernel hands programs for
arm64 to qemu, and a folder of the test is the box's /box. Nothing of this machine changes, and nobody needs root. The
network is this machine's, so that the box reaches a registry of the test.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from arm64_root import fetched_arm64

from nndeploy.wheelhouse.box import box_of

DEBIAN = box_of("aarch64", glibc="2.36", python="3.11")
CPU_INFO = "processor\t: 0\nFeatures\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp asimddp\n\n"
"""/proc/cpuinfo of the box, as Linux says it of a Cortex-A76; Debian's qemu gives programs that of this machine."""
ARM64_PROGRAMS = (
    r":arm64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
    r":\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:{qemu}:OCF"
)
"""The first bytes of a program for arm64, which of their bits count, and that qemu is opened here, not in the box.

Source: Linux, Documentation/admin-guide/binfmt-misc.rst; qemu, scripts/qemu-binfmt-conf.sh.
"""
CAN_ENTER = 'mount -t binfmt_misc none "$1" && echo 1 > "$1/status"'
ENTER = """
set -e
root=$1 folder=$2 programs=$3
shift 3
mount -t binfmt_misc none "$folder/binfmt"
printf %s "$programs" > "$folder/binfmt/register"
mount --rbind /proc "$root/proc"
mount --bind "$folder/cpuinfo" "$root/proc/cpuinfo"
mount --rbind /dev "$root/dev"
mount -t tmpfs none "$root/tmp"
mount --bind "$folder/box" "$root/box"
cd "$root/box"
exec chroot "$root" "$@"
"""
COMMANDS = r"""
import json, sys
from nndeploy.cli.main import run_command
for command in json.loads(sys.argv[1]):
    print("\x1e", run_command(command), "\x1f", sep="", flush=True)
"""
"""Runs commands in one process, as each start takes seconds; behind what each printed stands its exit code."""


@dataclass(frozen=True)
class Arm64Box:
    """`folder` is /box in there; below it lies all that the box installs or keeps."""

    fetched: Path
    scratch: Path

    @property
    def folder(self) -> Path:
        return self.scratch / "box"

    def install(self, own_wheels: Path) -> None:
        """Gathers a wheelhouse for the box, without a network, and installs it."""
        _install(_wheelhouse(self.fetched / "wheels", own_wheels, self.scratch / "wheels"), self.folder / "site")

    def run(self, *command: str) -> "subprocess.CompletedProcess[str]":
        """Runs a program of the box in /box."""
        programs = ARM64_PROGRAMS.format(qemu=self.fetched / "qemu" / "qemu-aarch64-static")
        before = _namespace(
            ENTER, str(self.fetched / "root"), str(self.scratch), programs, "/usr/bin/env", "-C", "/box"
        )
        there = {
            "HOME": "/box/home", "NNDEPLOY_STORE": "/box/store", "PYTHONPATH": "/box/site", "PATH": "/usr/bin:/bin",
        }  # fmt: skip
        environment = [f"{name}={value}" for name, value in there.items()]
        return subprocess.run([*before, *environment, *command], capture_output=True, text=True, check=False)

    def nndeploy(self, *commands: Sequence[str]) -> list[tuple[int, str]]:
        """Runs commands of nndeploy one after the other; returns the exit code and the output of each."""
        done = self.run("python3.11", "-c", COMMANDS, json.dumps(commands))
        *parts, rest = done.stdout.split("\x1f")
        assert (done.returncode, len(parts), rest) == (0, len(commands), "\n"), done.stderr
        results = [part.rpartition("\x1e") for part in parts]
        for command, (_, _, code) in zip(commands, results, strict=True):
            print(*command, "->", code)
        print(done.stderr)  # which pytest shows where a test fails
        return [(int(code), output) for output, _, code in results]


def arm64_box(scratch: Path) -> Arm64Box:
    """Returns a box with nothing of ours on it, which lives in a new folder; skips where none can run."""
    fetched = fetched_arm64()
    for name in ("", "binfmt", "box", "box/home"):
        (scratch / name).mkdir()
    done = subprocess.run(_namespace(CAN_ENTER, str(scratch / "binfmt")), capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no namespace with programs of its own, which Linux has from 6.7 on: {done.stderr.strip()}")
    (scratch / "cpuinfo").write_text(CPU_INFO)
    return Arm64Box(fetched, scratch)


def _namespace(script: str, *words: str) -> list[str]:
    """Returns the command that runs a script of the shell with mounts of its own, which this machine does not see."""
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("unshare, of util-linux, is not installed")
    path = "PATH=/usr/sbin:/usr/bin:/sbin:/bin"
    return [
        "/usr/bin/env", "-i", path, unshare, "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", *words,
    ]  # fmt: skip


def _wheelhouse(others: Path, own: Path, out: Path) -> Path:
    words = ["--for", DEBIAN.arch, "--python", DEBIAN.python_version, "--glibc", f"2.{DEBIAN.glibc}"]
    words += ["--with", "registry", "--find-links", str(own), "--find-links", str(others)]
    command = [sys.executable, "-m", "nndeploy", "wheelhouse", *words, "-o", str(out)]
    offline = {**os.environ, "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
    done = subprocess.run(command, env=offline, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stderr}; does `make arm64-root` bring what is missing?"
    return out


def _install(wheels: Path, site: Path) -> None:
    """Unpacks what fits the box, each wheel against its hash, by pip of this machine: emulated it takes a minute."""
    words = [word for platform in DEBIAN.platforms for word in ("--platform", platform)]
    words += ["--python-version", DEBIAN.python_version, "--only-binary=:all:", "--no-compile", "--target", str(site)]
    words += ["--no-index", "--find-links", str(wheels), "--require-hashes", "-r", str(wheels / "requirements.txt")]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words]
    subprocess.run(command, env={**os.environ, "PIP_CONFIG_FILE": os.devnull}, check=True)
