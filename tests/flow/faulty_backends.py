# SPDX-License-Identifier: Apache-2.0
"""Backends that misbehave on purpose, made of a good one, and a fixture that installs them for one test."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from nndeploy.compiler import flow
from nndeploy.errors import BuildRefusedError
from nndeploy.jobs.workers import InProcessWorkers
from nndeploy.plugin import registry
from nndeploy.plugin.interface import Artifact, OpenOptions, Session, Support

Install = Callable[..., None]


class ChangedSession:
    """A good session with something done to each of its runs."""

    def __init__(self, session: Session, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self._session, self._change = session, change

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        return self._change(self._session.run(inputs))

    def close(self) -> None:
        self._session.close()


def good_backend() -> type:
    from nndeploy_onnxruntime.plugin import Plugin

    return Plugin


def changed_backend(name: str, tier: int, change: Callable[[dict[str, Any]], dict[str, Any]]) -> type:
    """Returns a backend that takes what ONNX Runtime takes and changes every output with `change`."""

    class Changed(good_backend()):  # type: ignore[misc]
        def open(self, files: Any, metadata: Any, options: OpenOptions) -> Session:
            return ChangedSession(super().open(files, metadata, options), change)

    Changed.name, Changed.tier = name, tier
    return Changed


def off_by_one(outputs: dict[str, Any]) -> dict[str, Any]:
    return {name: value + np.ones((), value.dtype) for name, value in outputs.items()}


def late(outputs: dict[str, Any]) -> dict[str, Any]:
    time.sleep(0.01)
    return outputs


def refusing_backend(name: str, tier: int, reason: str) -> type:
    """Returns a backend that takes every node and then will not build."""

    class Refusing(good_backend()):  # type: ignore[misc]
        def build(self, *_: Any) -> Artifact:
            raise BuildRefusedError(reason)

    Refusing.name, Refusing.tier = name, tier
    return Refusing


def choosy_backend(name: str, tier: int, *operators: str) -> type:
    """Returns a good backend that takes only some operators."""

    class Choosy(good_backend()):  # type: ignore[misc]
        def supports(self, model: Any, target: Any, options: Any) -> list[Support]:
            return [Support(n.op_type in operators, f"{name} has no {n.op_type}") for n in model.graph]

    Choosy.name, Choosy.tier = name, tier
    return Choosy


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Returns a function that puts backend classes beside the installed ones for this test, which runs them here."""
    real = registry.PLUGINS._all
    monkeypatch.setattr(flow, "shared_workers", InProcessWorkers)  # a child knows of installed ones only
    extra: dict[str, Any] = {}

    class Point:
        value = "tests"

        def __init__(self, backend: type) -> None:
            self._backend = backend

        def load(self) -> type:
            return self._backend

    def add(*backends: Any) -> None:
        extra.update({backend.name: (Point(backend),) for backend in backends})
        monkeypatch.setattr(registry.PLUGINS, "_all", {**real, **extra})
        registry.backend.cache_clear()

    yield add
    registry.backend.cache_clear()
