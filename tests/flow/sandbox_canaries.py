# SPDX-License-Identifier: Apache-2.0
"""A backend that tries what an exploited library would: its source, installed beside the real ones for a command.

It does so where the compile imports it and where a worker builds with it, and says what it got through.
"""

import json
import os
import socket
import sys
from pathlib import Path

from nndeploy_kernels.loading import LIBRARIES

PLUGIN = r"""
import ctypes, json, os, socket
from pathlib import Path
from nndeploy.errors import BuildRefusedError
from nndeploy_onnxruntime.plugin import Plugin as Good

PLANTED = json.loads(@PLANTED@)
LIBC = ctypes.CDLL(None, use_errno=True)
HOME, NAME = ctypes.c_char_p(PLANTED["home"].encode()), ctypes.c_char_p(b"user.planted")
TEXT = ctypes.create_string_buffer(b"x")
VALUE = (ctypes.c_uint64 * 2)(ctypes.addressof(TEXT), 1)


def called(number, *arguments):
    if LIBC.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments)) < 0:
        raise OSError(ctypes.get_errno(), "refused")


def sent(kind, family, address):
    with socket.socket(family, kind) as one:
        one.connect(address)
        one.send(b"secret")


def attached():
    if LIBC.ptrace(0x4206, os.getppid(), None, None) < 0:
        raise OSError(ctypes.get_errno(), "refused")


def wrote_somewhere():  # where another job, or a command of the user's, may read it
    refused = None
    for folder in PLANTED["folders"]:
        try:
            Path(folder, "planted.so").write_text("x")
            return
        except OSError as err:
            refused = err
    raise refused


def began_a_session():
    if not (pid := os.fork()):
        try:
            os.setsid()
            os._exit(0)
        finally:
            os._exit(1)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
        raise OSError("refused")


EVERYWHERE = {
    "read a private key": lambda: Path(PLANTED["home"], ".ssh/x").read_text(),
    "list the home": lambda: os.listdir(PLANTED["home"]),
    "read the signing key": lambda: Path(PLANTED["home"], ".config/nndeploy/key").read_text(),
    "read a signing key beside the model": lambda: Path(PLANTED["model"]).with_name("farm.key").read_text(),
    "read another job": lambda: Path(PLANTED["job"], "request.json").read_text(),
    "read the accounts": lambda: Path("/etc/passwd").read_text(),
    "write the home": lambda: Path(PLANTED["home"], "written").write_text("x"),
    "append to a file": lambda: open(Path(PLANTED["home"], ".profile"), "a").write("x"),
    "truncate a file": lambda: os.truncate(Path(PLANTED["home"], ".profile"), 0),
    "remove a file": lambda: Path(PLANTED["home"], ".profile").unlink(),
    "write a file for others": wrote_somewhere,
    "connect": lambda: sent(socket.SOCK_STREAM, socket.AF_INET, ("127.0.0.1", PLANTED["tcp"])),
    "send a datagram": lambda: sent(socket.SOCK_DGRAM, socket.AF_INET, ("127.0.0.1", PLANTED["udp"])),
    "reach an abstract socket": lambda: sent(socket.SOCK_STREAM, socket.AF_UNIX, "\0" + PLANTED["unix"]),
    "trace the parent": attached,
    "signal the parent's parent": lambda: os.kill(PLANTED["tests"], 0),
    "read its environment": lambda: Path(f"/proc/{PLANTED['tests']}/environ").read_bytes(),
    "limit it": lambda: __import__("resource").prlimit(PLANTED["tests"], 0),
    "make a user namespace": lambda: called({"x86_64": 272, "aarch64": 97}[os.uname().machine], 0x10000000),
    "make a ring of calls": lambda: called(425, 1, 0),
    "change attributes by a new call": lambda: called(
        463, -100, ctypes.cast(HOME, ctypes.c_void_p).value, 0, ctypes.cast(NAME, ctypes.c_void_p).value,
        ctypes.addressof(VALUE), 16
    ),
    "change attributes": lambda: os.setxattr(PLANTED["home"], "user.planted", b"x"),
}
IN_WORKERS = {
    "read the model's folder": lambda: Path(PLANTED["model"]).read_bytes(),
    "read the compile's request": lambda: Path(os.environ["HOME"]).parent.joinpath("request.json").read_text(),
    "begin a session": began_a_session,
}


def got_through(attempts):
    got = []
    for name, attempt in attempts.items():
        try:
            attempt()
            got.append(name)
        except OSError:
            pass
    return got


if got := got_through(EVERYWHERE):
    raise ImportError(f"got through: {', '.join(got)}")


class Plugin(Good):
    tier = 1

    def build(self, submodel, target, options, workdir):
        if got := got_through({**EVERYWHERE, **IN_WORKERS}):
            raise BuildRefusedError(f"got through: {', '.join(got)}")
        Path(PLANTED["home"], ".ssh/x").read_text()


Plugin.name = "canary"
"""


class Planted:
    """What the backend is to find: secrets, another job's folder, and somebody who listens."""

    def __init__(self, folder: Path) -> None:
        self.home, self.temporary, self.output = folder / "home", folder / "temporary", folder / "output"
        self.model = folder / "models/m.onnx"
        self.job = self.temporary / "nndeploy-job-other"
        self.cache = folder / "cache"
        keys, secrets = self.home / ".config/nndeploy", self.home / ".ssh"
        caches = [self.cache / name for name in ("", "nndeploy", "nndeploy/zig-0.17.0", "nndeploy-builds/ac", "zig")]
        for path in (secrets, keys, self.job, self.output, self.model.parent, *caches):
            path.mkdir(parents=True, exist_ok=True)
        shared = [Path(name) for name in ("/tmp", "/var/tmp", "/dev/shm")]  # noqa: S108 - nothing is made there
        own = (self.home, self.temporary, self.output, self.model.parent, keys, self.job)
        self.folders = [*caches, *own, *shared, LIBRARIES, Path(sys.prefix), Path.cwd()]
        for path in (secrets / "x", keys / "key", self.home / ".profile", self.job / "request.json"):
            path.write_text("secret")
        self.model.with_name("farm.key").write_text("-----BEGIN PRIVATE KEY-----")
        self.tcp, self.unix = socket.socket(), socket.socket(socket.AF_UNIX)
        self.udp = socket.socket(type=socket.SOCK_DGRAM)
        self.name = f"nndeploy-test-{os.getpid()}-{folder.name}"
        for one, address in ((self.tcp, ("127.0.0.1", 0)), (self.udp, ("127.0.0.1", 0)), (self.unix, f"\0{self.name}")):
            one.bind(address)
            one.settimeout(0.2)
        self.tcp.listen()
        self.unix.listen()

    def close(self) -> None:
        for one in (self.tcp, self.udp, self.unix):
            one.close()

    def plugin(self) -> str:
        """Returns the source of the backend."""
        planted = {
            "home": str(self.home), "temporary": str(self.temporary), "job": str(self.job), "output": str(self.output),
            "model": str(self.model), "tcp": self.tcp.getsockname()[1], "udp": self.udp.getsockname()[1],
            "unix": self.name, "tests": os.getpid(), "folders": [str(folder) for folder in self.folders],
        }  # fmt: skip
        return PLUGIN.replace("@PLANTED@", repr(json.dumps(planted)))

    def heard(self) -> list[str]:
        """Returns which of those that listen were reached."""
        return [name for name in ("tcp", "udp", "unix") if self._was_reached(name)]

    def _was_reached(self, name: str) -> bool:
        try:
            if name == "udp":
                return bool(self.udp.recv(9))
            getattr(self, name).accept()[0].close()
        except TimeoutError:
            return False
        return True

    def files(self) -> dict[str, str]:
        """Returns what lies in the home, the cache and among the temporary files."""
        folders = (self.home, self.temporary, self.cache)
        return {str(p.relative_to(f)): p.read_text() for f in folders for p in f.rglob("*") if p.is_file()}
