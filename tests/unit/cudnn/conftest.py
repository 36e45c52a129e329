# SPDX-License-Identifier: Apache-2.0
"""What the tests of the cuDNN backend share: planners that live as long as the run, and a pretended GPU."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx_ir as ir
import pytest
from cudnn_interpreter import InterpretedHandle
from cudnn_models import run_artifact
from nndeploy_cudnn import build as build_module
from nndeploy_cudnn import session as session_module
from nndeploy_cudnn import support as support_module
from nndeploy_cudnn.library import HINT, installed_path
from nndeploy_cudnn.planner import Planner
from nndeploy_cudnn.plugin import Plugin

from nndeploy.cuda.current_driver import injected_driver
from nndeploy.plugin.interface import BuildOptions
from nndeploy.target.target import Gpu, Target
from nndeploy.testing.host_driver import HostDriver


@pytest.fixture(scope="session")
def needs_cudnn() -> None:
    """Skips a test where cuDNN is not installed."""
    if not installed_path():
        pytest.skip(f"cuDNN is not installed ({HINT})")


@pytest.fixture(scope="session")
def shared_planners() -> Iterator[dict[str, Planner]]:
    """One planner a GPU for the whole run; starting one takes half a second."""
    planners: dict[str, Planner] = {}
    yield planners
    for planner in planners.values():
        planner.close()


@pytest.fixture
def planners(needs_cudnn: None, shared_planners: dict[str, Planner], monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes `supports` and `build` use the shared planners."""

    @contextmanager
    def shared(gpu: Gpu) -> Iterator[Planner]:
        if gpu.name not in shared_planners:
            shared_planners[gpu.name] = Planner(gpu)
        yield shared_planners[gpu.name]

    monkeypatch.setattr(build_module, "planner_for", shared)
    monkeypatch.setattr(support_module, "planner_for", shared)


@pytest.fixture
def host_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """A machine whose GPU is host memory and whose cuDNN is numpy: `.driver`, `.handles`, `.library`."""
    found = SimpleNamespace(driver=HostDriver(), handles=[], library=SimpleNamespace(version=0))

    def opened(_library: object) -> InterpretedHandle:
        found.handles.append(InterpretedHandle())
        return found.handles[-1]

    monkeypatch.setattr(session_module, "Handle", opened)
    monkeypatch.setattr(session_module, "cudnn_library", lambda: found.library)
    with injected_driver(found.driver):
        yield found


@pytest.fixture
def run_built(planners: None, host_gpu: SimpleNamespace) -> Callable[..., dict[str, np.ndarray]]:
    """Returns a function that builds a model for a target and runs it on the pretended GPU."""

    def run(
        model: ir.Model, target: Target, inputs: Mapping[str, np.ndarray], options: BuildOptions | None = None
    ) -> dict[str, np.ndarray]:
        artifact = Plugin().build(model, target, options or BuildOptions(), Path())
        return run_artifact(artifact, inputs, host_gpu)

    return run
