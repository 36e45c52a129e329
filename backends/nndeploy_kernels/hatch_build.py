# SPDX-License-Identifier: Apache-2.0
"""What the build of the wheel adds to the tree: the libraries of one architecture, for which the wheel is."""

import os
import platform
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ARCH = "NNDEPLOY_KERNELS_ARCH"
"""The variable that names another architecture than this machine's."""


class Libraries(BuildHookInterface):  # type: ignore[type-arg] # generic for its type checkers alone
    """Builds the libraries and says on which systems they run."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Adds the libraries, built where they are not up to date.

        Raises:
            ValueError: there are none for the architecture.
        """
        sys.path.insert(0, str(Path(self.root).parent))
        from nndeploy_kernels.build import LIBRARIES, build_all
        from nndeploy_kernels.levels import GLIBC, LEVELS

        arch = os.environ.get(ARCH) or platform.machine()
        known = sorted({level.arch for level in LEVELS})
        if arch not in known:
            raise ValueError(f"there are no kernels for {arch}, only for {', '.join(known)}")
        libraries = build_all(arch)
        build_data["force_include"] |= {str(path): f"lib/{path.relative_to(LIBRARIES)}" for path in libraries}
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-manylinux_{GLIBC.replace('.', '_')}_{arch}"
