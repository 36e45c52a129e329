# SPDX-License-Identifier: Apache-2.0
"""Services over Python functions, on free ports of this machine, and what calls them."""

import contextlib
import datetime as dt
import http.client
import ipaddress
import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from exposition_page import samples_of

from nndeploy.bundle.manifest import Golden, Manifest, NamedType
from nndeploy.errors import UsageError
from nndeploy.runtime.input_checks import InputChecks
from nndeploy.values.types import DimRange, TensorType, Value, ValueType

X = TensorType("float32", ("N", 3))
ALONE = {"takes_bundled_pipeline": False}  # nobody looks into the file, which is not there
SAMPLE = np.arange(6, dtype=np.float32).reshape(2, 3)


def double(x: Value) -> dict[str, Value]:
    return {"y": x * np.float32(2)}


class FakeProgram:
    """Checks inputs as a program does, computes with a Python function, and has one golden, which doubles."""

    rows_at_once = 1 << 31
    calls_at_once, stages = 1, ()

    def __init__(
        self,
        function: Callable[..., dict[str, Value]] = double,
        inputs: Mapping[str, ValueType] | None = None,
        outputs: Mapping[str, ValueType] | None = None,
        *,
        has_golden: bool = True,
    ) -> None:
        inputs, outputs = inputs or {"x": X}, outputs or {"y": X}
        goldens = (Golden("in", "out", "", "sample"),) if has_golden else ()
        self.inputs = tuple(NamedType(name, kind) for name, kind in inputs.items())
        self.outputs = tuple(NamedType(name, kind) for name, kind in outputs.items())
        self.manifest = Manifest(
            "m", "0" * 64, self.inputs, self.outputs, (), {**inputs, **outputs}, goldens=goldens,
            ranges={"N": DimRange(1, 64, 2)},
        )  # fmt: skip
        self.bundle = self
        self.is_closed = False
        self.sizes: list[int] = []
        self._checks = InputChecks(self.inputs, self.manifest.ranges)
        self._function = function

    def values(self, member: str) -> dict[str, Value]:
        return {"in": {"x": SAMPLE}, "out": {"y": SAMPLE * 2}}[member]

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        if self.is_closed:
            raise UsageError("the program is closed")
        checked = self._checks(inputs)
        self.sizes.append(len(next(iter(checked.values()))))
        return self._function(**checked)

    def close(self) -> None:
        self.is_closed = True


class Caller:
    """Asks a service over HTTP."""

    def __init__(self, service: Any, said: list[str]) -> None:
        self.service, self.said = service, said
        self.port = service.addresses["http"].port if "http" in service.addresses else 0

    def ask(
        self, path: str, body: bytes | str | None = None, headers: Mapping[str, str] = {}, method: str = ""
    ) -> tuple[int, Any]:
        """Returns the status and the body of an answer, as JSON where it is."""
        status, found, _ = self.asked(path, body, headers, method)
        return status, found

    def asked(
        self, path: str, body: bytes | str | None = None, headers: Mapping[str, str] = {}, method: str = ""
    ) -> tuple[int, Any, Mapping[str, str]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        with contextlib.closing(connection):
            connection.request(method or ("GET" if body is None else "POST"), path, body, dict(headers))
            answer = connection.getresponse()
            data, found = answer.read(), dict(answer.getheaders())
        return answer.status, json.loads(data) if found.get("Content-Type") == "application/json" else data, found

    def figure(self, name: str, **labels: str) -> float:
        """Returns the sum of the samples of a figure that have these labels."""
        found = samples_of(self.ask("/metrics")[1].decode())
        return sum(
            value
            for (sample, pairs), value in found.items()
            if sample == f"nndeploy_serve_{name}" and labels.items() <= set(pairs)
        )

    def infer(self, rows: int = 1, **more: Any) -> tuple[int, Any]:
        one = {"name": "x", "shape": [rows, 3], "datatype": "FP32", "data": [1.0] * 3 * rows}
        return self.ask("/v2/models/m/infer", json.dumps({"inputs": [one], **more}))


def wait_until(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    """Waits until something holds; the time limit only ends a test that has failed."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.002)


@pytest.fixture
def fake_program() -> type[FakeProgram]:
    return FakeProgram


@pytest.fixture
def until() -> Callable[..., None]:
    return wait_until


@pytest.fixture
def tls_files(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate of 127.0.0.1 that signs itself, and its key."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "box")])
    now = dt.datetime.now(dt.UTC)
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - dt.timedelta(hours=1)).not_valid_after(now + dt.timedelta(hours=1))
    signed = builder.add_extension(here, critical=False).sign(key, SHA256())
    paths = tmp_path / "cert.pem", tmp_path / "key.pem"
    paths[0].write_bytes(signed.public_bytes(Encoding.PEM))
    paths[1].touch(0o600)
    paths[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return paths


@pytest.fixture
def serving() -> Iterator[Callable[..., Caller]]:
    """Returns a function: program, options -> a caller of a service that serves it as `m`."""
    from nndeploy.serve.address import Address
    from nndeploy.serve.options import ServeOptions
    from nndeploy.serve.service import Service

    with contextlib.ExitStack() as stack:

        def serve(program: Any = None, *, loads: bool = True, **options: Any) -> Caller:
            how = {"http": Address("127.0.0.1", 0), "grpc": None, "grace": 1.0, **ALONE} | options
            opened = program or FakeProgram()
            said = list[str]()
            service = Service({"m": Path("m.nnd")}, ServeOptions(**how), lambda *_, **__: opened, said.append)
            stack.enter_context(service)
            if loads:
                service.load()
            return Caller(service, said)

        yield serve
