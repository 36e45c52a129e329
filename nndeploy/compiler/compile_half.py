# SPDX-License-Identifier: Apache-2.0
"""What the compile half needs beside the run half: the extra `compile`, which a box that only runs bundles lacks."""

from importlib.util import find_spec

from nndeploy.errors import UnavailableError
from nndeploy.version import install_command

PACKAGES = {"ml_dtypes": "ml-dtypes", "onnx": "onnx", "onnx_ir": "onnx-ir"}
"""Module -> the distribution of the extra that brings it."""
HINT = install_command("compile")


def check_compile_half() -> None:
    """Raises UnavailableError, which names what is missing and what brings it, where this Python cannot compile."""
    missing = [distribution for module, distribution in PACKAGES.items() if find_spec(module) is None]
    if missing:
        raise UnavailableError(f"compiling needs {', '.join(missing)}, not installed here", hint=HINT)
