# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for bundles and backends, so that the runtime is tested by itself."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import nndeploy.runtime.select as select_module
from nndeploy.bundle.manifest import Manifest, Variant
from nndeploy.errors import UnavailableError
from nndeploy.plugin.interface import OpenOptions, Probe
from nndeploy.values.types import Value


class FakeSession:
    """A session over a Python function; counts its closings."""

    def __init__(self, function: Callable[..., dict[str, Value]]) -> None:
        self._function = function
        self.num_closed = 0

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        return self._function(**inputs)

    def close(self) -> None:
        self.num_closed += 1


@dataclass
class FakeBackend:
    """Opens what its `functions` hold under metadata["function"]."""

    name: str
    probe_result: Probe = field(default_factory=lambda: Probe(True, True, "1.0"))
    functions: dict[str, Callable[..., dict[str, Value]]] = field(default_factory=dict)
    failure: Exception | None = None
    opened: list[tuple[dict[str, bytes], OpenOptions, FakeSession]] = field(default_factory=list)

    def probe(self, target: object) -> Probe:
        return self.probe_result

    def open(self, files: Mapping[str, memoryview], metadata: Mapping[str, str], options: OpenOptions) -> FakeSession:
        if self.failure is not None:
            raise self.failure
        session = FakeSession(self.functions[metadata["function"]] if "function" in metadata else dict)
        self.opened.append(({name: bytes(data) for name, data in files.items()}, options, session))
        return session


@dataclass
class FakeBundle:
    """What `Program` needs of a bundle."""

    manifest: Manifest
    constants: dict[str, Value] = field(default_factory=dict)
    path: Path = Path("model.nnd")
    is_closed: bool = False
    signature: bytes = b""
    manifest_text: bytes = b"{}"

    def member(self, name: str) -> memoryview:
        return memoryview(name.encode())

    def values(self, name: str) -> dict[str, Value]:
        return self.constants

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Returns a function that makes the given fake backends the installed ones."""

    def install(*backends: FakeBackend) -> None:
        table = {backend.name: backend for backend in backends}
        monkeypatch.setattr(select_module, "is_installed", lambda name: name in table)
        monkeypatch.setattr(select_module, "backend", table.__getitem__)
        monkeypatch.setattr("nndeploy.runtime.program.is_stranger", lambda _bundle: False)

    return install


@pytest.fixture
def fake_backend() -> type[FakeBackend]:
    return FakeBackend


@pytest.fixture
def fake_bundle() -> type[FakeBundle]:
    return FakeBundle


@pytest.fixture
def fake_session() -> type[FakeSession]:
    return FakeSession


@pytest.fixture
def variant() -> Callable[..., Variant]:
    """Returns a function that makes a variant of one backend."""

    def variant(backend: str, **fields: object) -> Variant:
        values = {"id": f"{backend}-1", "target": "host", "files": {"model": f"submodels/s0/{backend}/model"}}
        return Variant(backend=backend, **(values | fields))

    return variant


@pytest.fixture
def unavailable() -> UnavailableError:
    return UnavailableError("no such library", hint="install it")
