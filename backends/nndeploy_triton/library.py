# SPDX-License-Identifier: Apache-2.0
"""Triton as it is installed: whether it is, and its version. It is not imported until a kernel is compiled."""

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from nndeploy.version import install_command

HINT = install_command("triton")


def triton_missing() -> str:
    """Returns why kernels cannot be compiled here, or ""."""
    return "" if find_spec("triton") is not None else "triton is not installed"


def triton_version() -> str:
    """Returns the version of the installed package, "" where it says none."""
    try:
        return version("triton")
    except PackageNotFoundError:
        return ""
