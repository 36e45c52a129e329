# SPDX-License-Identifier: Apache-2.0
"""What `make arm64-root` fetched: Debian for arm64, the wheels for it, and qemu, which runs its programs here."""

import os
import platform
from pathlib import Path

import pytest

FETCHED = Path(__file__).resolve().parents[1] / "build" / "arm64-root"
VARIABLE = "NNDEPLOY_ARM64_ROOT"
"""Names the folder, where it is elsewhere."""


def fetched_arm64() -> Path:
    """Returns the folder with root/, wheels/ and qemu/qemu-aarch64-static; skips where it is absent."""
    fetched = Path(os.environ.get(VARIABLE) or FETCHED)
    if not (fetched / "ready").exists():
        pytest.skip(f"no Debian for arm64 in {fetched}; `make arm64-root` fetches it, ${VARIABLE} names another folder")
    return fetched


def before_arm64_program(cpu: str = "max") -> list[str]:
    """Returns the command before a program for aarch64 that needs no more than the C library; skips as above.

    `cpu`: the processor that qemu is, as it calls it; a machine for aarch64 is the one that it is.
    """
    if platform.machine() == "aarch64":
        return []
    fetched = fetched_arm64()
    return [str(fetched / "qemu" / "qemu-aarch64-static"), "-cpu", cpu, "-L", str(fetched / "root")]
