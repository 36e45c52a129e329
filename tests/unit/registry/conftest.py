# SPDX-License-Identifier: Apache-2.0
"""A bundle with weights, a registry in a thread that holds it, and no waiting between attempts."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from registry_server import RegistryServer
from weighty_bundles import QUICK, write_weights

from nndeploy.registry import connection
from nndeploy.registry.push import push


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No waiting, and no credentials of who runs the tests; skips where the library is not installed."""
    pytest.importorskip("requests", reason="the extra `registry` is not installed")
    monkeypatch.setattr(connection, "FIRST_WAIT_SECONDS", 0.0)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with RegistryServer() as server:
        yield server


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "pushed.nnd"
    write_weights(path, (1, 2, 3))
    return path


@pytest.fixture
def pushed(registry: RegistryServer, bundle: Path) -> RegistryServer:
    """A registry that holds the bundle as 1, and has forgotten how it came to it."""
    push(bundle, registry.reference(), options=QUICK)
    registry.asked.clear()
    return registry


@pytest.fixture
def box(tmp_path: Path) -> Path:
    """An empty folder."""
    (tmp_path / "box").mkdir()
    return tmp_path / "box"
