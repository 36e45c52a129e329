# SPDX-License-Identifier: Apache-2.0
"""Debian's docker-registry in a process of its own, where the program is: `make docker-registry` fetches it."""

import base64
import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

FETCHED = Path(__file__).resolve().parents[2] / "build" / "docker-registry" / "usr" / "bin"
VARIABLE = "NNDEPLOY_DOCKER_REGISTRY"
"""Names the folder of the program, where it is elsewhere."""
USER, PASSWORD = "farm", "secret"
HASHED = "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW"  # bcrypt of PASSWORD


@dataclass(frozen=True)
class DebianRegistry:
    """A registry that runs; `certificate` is "" where it speaks without TLS."""

    port: int
    certificate: str = ""

    def reference(self, tag: str) -> str:
        return f"oci://127.0.0.1:{self.port}/team/faces:{tag}"


def program() -> str:
    """Returns the path of docker-registry; skips where it is not found."""
    folders = os.pathsep.join([os.environ.get(VARIABLE, ""), os.environ.get("PATH", ""), str(FETCHED)])
    found = shutil.which("docker-registry", path=folders)
    if found is None:
        pytest.skip(f"docker-registry is neither on PATH nor in ${VARIABLE}; `make docker-registry` fetches it")
    return found


@contextlib.contextmanager
def running(folder: Path, *, with_tls: bool = False, with_password: bool = False) -> Iterator[DebianRegistry]:
    """Gives a registry on this machine that keeps its data in a folder."""
    name, port, certificate = program(), free_port(), ""
    lines = [
        "version: 0.1",
        f"storage: {{filesystem: {{rootdirectory: {folder / 'store'}}}}}",
        "log: {level: error, accesslog: {disabled: true}}",
    ]
    tls = ""
    if with_tls:
        certificate = make_certificate(folder)
        tls = f", tls: {{certificate: {certificate}, key: {folder / 'key.pem'}}}"
    lines.append(f'http: {{addr: "127.0.0.1:{port}"{tls}}}')
    if with_password:
        (folder / "htpasswd").write_text(f"{USER}:{HASHED}\n")
        lines.append(f"auth: {{htpasswd: {{realm: basic-realm, path: {folder / 'htpasswd'}}}}}")
    (folder / "config.yml").write_text("\n".join(lines) + "\n")
    with (folder / "log").open("wb") as log:
        command = [name, "serve", str(folder / "config.yml")]
        process = subprocess.Popen(command, stdout=log, stderr=log, env={"OTEL_TRACES_EXPORTER": "none"})
    try:
        await_port(port, process, folder / "log")
        yield DebianRegistry(port, certificate)
    finally:
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def await_port(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise AssertionError(f"docker-registry does not listen: {log.read_text()[-2000:]}")


def make_certificate(folder: Path) -> str:
    """Makes a key and a certificate for this machine, signed by itself; returns the path of the certificate."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl, which makes a certificate, is not installed")
    command = [
        openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
        "-subj", "/CN=farm", "-addext", "subjectAltName=IP:127.0.0.1",
        "-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem"),
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    return str(folder / "cert.pem")


def docker_auth() -> str:
    return base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
