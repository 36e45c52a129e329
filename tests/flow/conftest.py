# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the flow tests."""

import platform
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from compile_with import native_compiler
from faulty_backends import install
from nndeploy_kernels import build_runtime, loading
from nndeploy_kernels.build import build, level_here
from nndeploy_kernels.levels import LEVELS
from nndeploy_native import session
from served_commands import manager, served

from nndeploy.target.target import host_target

__all__ = ["install", "manager", "served"]

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits.onnx"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, which is empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def python_at_v2(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets Python run as WebAssembly without relaxed SIMD does: by that level, and the second cache it supposes."""
    if platform.machine() != "x86_64":
        pytest.skip("no level of this architecture has the arithmetic of WebAssembly")
    level = next(one for one in LEVELS if one.name == "x86-64-v2")
    build(level)
    monkeypatch.setattr(loading, "installed", lambda *_: level)
    caches = tuple(one for one in host_target().caches if one[0] != "l2")  # by which long sums are cut into blocks
    monkeypatch.setattr(session, "host_target", lambda: replace(host_target(), caches=caches))


@pytest.fixture(scope="session")
def runner() -> Path:
    """The program nndeploy-run for this machine."""
    return build_runtime.build_runner(level_here().arch)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Any], Path]:
    """Returns what compiles a model for our own kernels, on one thread, once."""
    return native_compiler(tmp_path_factory.mktemp("bundles"))


@pytest.fixture(scope="module")
def digits(compiled: Callable[[Any], Path]) -> Path:
    """The digits, so compiled."""
    return compiled(DIGITS)
