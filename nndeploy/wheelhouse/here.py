# SPDX-License-Identifier: Apache-2.0
"""What this Python must have so that it can gather wheels for another."""

import importlib.util
import sys

from nndeploy.errors import UnavailableError
from nndeploy.version import install_command

HINTS = {"pip": f"{sys.executable} -m ensurepip", "packaging": install_command("compile")}
"""Module -> what brings it."""


def check_can_gather() -> None:
    """Raises UnavailableError, which names what is missing and what brings it."""
    for module, hint in HINTS.items():
        if importlib.util.find_spec(module) is None:
            raise UnavailableError(f"a wheelhouse needs the package {module}, not installed here", hint=hint)
