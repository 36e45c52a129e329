# SPDX-License-Identifier: Apache-2.0
"""The box that wheels are for: Linux with glibc on one architecture, and its CPython."""

import re
from dataclasses import dataclass

from nndeploy.errors import UnavailableError, UsageError
from nndeploy.target.known_targets import target_of

OLDEST_GLIBC = {"aarch64": 17, "x86_64": 5}
"""Architecture, for which nndeploy-toolchain has a wheel -> minor version of the oldest glibc 2 that a tag names.

Source: PEP 600 and PEP 599.
"""
OLDEST_PYTHON = (3, 11)


@dataclass(frozen=True, slots=True)
class Box:
    """`arch` as `uname -m` says; `glibc` is the minor version of glibc 2; `python` is (major, minor) of its CPython."""

    arch: str
    glibc: int
    python: tuple[int, int]

    def __str__(self) -> str:
        return f"{self.arch} with glibc 2.{self.glibc} or later, and Python {self.python_version}"

    @property
    def python_version(self) -> str:
        """Its Python as people write it: "3.11"."""
        return ".".join(map(str, self.python))

    @property
    def platforms(self) -> tuple[str, ...]:
        """The tags of wheels that it runs, the newest first; pip knows which older names the last one stands for."""
        minors = range(self.glibc, OLDEST_GLIBC[self.arch] - 1, -1)
        return (*(f"manylinux_2_{minor}_{self.arch}" for minor in minors), f"manylinux2014_{self.arch}")

    @property
    def conditions(self) -> dict[str, str]:
        """What it answers to the conditions of requirements. Source: PEP 508, environment markers."""
        return {
            "implementation_name": "cpython", "implementation_version": f"{self.python_version}.0",
            "os_name": "posix", "platform_machine": self.arch, "platform_python_implementation": "CPython",
            "platform_release": "", "platform_system": "Linux", "platform_version": "",
            "python_full_version": f"{self.python_version}.0", "python_version": self.python_version,
            "sys_platform": "linux",
        }  # fmt: skip


def box_of(name: str, glibc: str, python: str) -> Box:
    """Returns the box of an architecture, or of the name or file of a target; versions as people write them.

    Raises:
        UsageError: a name or a version has no meaning.
        UnavailableError: there are no wheels of ours for its architecture.
        MissingInputError, DataError: the target's file is missing or malformed.
    """
    arch = name if name in OLDEST_GLIBC else _arch_of_target(name)
    minors = {"2": _minor("--glibc", glibc, "2.28"), "3": _minor("--python", python, "3.11")}
    box = Box(arch, minors["2"], (3, minors["3"]))
    if box.python < OLDEST_PYTHON:
        raise UsageError(f"nndeploy needs Python 3.{OLDEST_PYTHON[1]} or later, not {python}")
    if arch not in OLDEST_GLIBC:
        raise UnavailableError(f"there is no wheel of nndeploy for {arch}", hint=f"there is one for {_known()}")
    return box


def _arch_of_target(name: str) -> str:
    try:
        return target_of(name).arch
    except UsageError as err:
        raise UsageError(err.what, hint=f"an architecture: {_known()}; {err.hint}") from err


def _known() -> str:
    return ", ".join(OLDEST_GLIBC)


def _minor(option: str, text: str, example: str) -> int:
    found = re.fullmatch(rf"{example[0]}\.(\d{{1,2}})", text, re.ASCII)
    if found is None:
        raise UsageError(f"{option} takes a version such as {example}, not {text!r:.40}")
    return int(found[1])
