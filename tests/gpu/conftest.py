# SPDX-License-Identifier: Apache-2.0
"""Tests on an NVIDIA GPU: marked `gpu`, skipped with the driver's reason where there is none; their figures in a table.

`make gpu-check` runs them with a limit for each and for all (docs/internals/gpu-check.md).
"""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from nndeploy.cuda import cuda_unavailable

HERE = Path(__file__).resolve().parent
EX_UNAVAILABLE = 69
BEGAN = "GPU_CHECK_BEGAN"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("gpu")
    group.addoption("--require-gpu", action="store_true", help=f"exit code {EX_UNAVAILABLE} where there is no GPU")
    group.addoption("--total", type=float, help="seconds after which no further test begins")
    group.addoption("--bundle", type=Path, action="append", help="bundles that were built elsewhere, run here")
    group.addoption("--target-out", type=Path, help="file for the probed target, for `--target` where one builds")


def pytest_configure(config: pytest.Config) -> None:
    os.environ.setdefault(BEGAN, str(time.time()))  # of all processes: one that crashed is started again
    if config.getoption("--require-gpu", default=False) and (why := cuda_unavailable()):
        pytest.exit(f"gpu-check: {why}", EX_UNAVAILABLE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ours = [item for item in items if item.path.parent == HERE]
    why = cuda_unavailable() if ours else ""
    for item in ours:
        item.add_marker("gpu")
        if why:
            item.add_marker(pytest.mark.skip(why))


def pytest_runtest_setup(item: pytest.Item) -> None:
    total = item.config.getoption("--total", default=None)
    if total and time.time() - float(os.environ[BEGAN]) > total:
        pytest.skip("no time was left")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints what tests recorded, one line a test."""
    found = [one for kind in ("passed", "failed", "skipped") for one in terminalreporter.stats.get(kind, ())]
    lines = [
        f"{one.nodeid.partition('::')[2]}: " + ", ".join(f"{name} {value}" for name, value in one.user_properties)
        for one in found
        if getattr(one, "user_properties", ()) and one.when == "call"
    ]
    if lines:
        terminalreporter.section("figures")
        terminalreporter.write_line("\n".join(sorted(lines)))


@pytest.fixture
def tier(request: pytest.FixtureRequest) -> str:
    """A backend for GPUs; skips with its reason where it cannot build and run here."""
    from gpu_backends import why_unusable

    name: str = request.param
    if why := why_unusable(name):
        pytest.skip(why)
    return name
