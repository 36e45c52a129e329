# SPDX-License-Identifier: Apache-2.0
"""What the build of a wheel adds to the tree: man pages, made by the command itself from its own help."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ManPages(BuildHookInterface):  # type: ignore[type-arg] # generic for its type checkers alone
    """Puts the man page of every command where `man` looks for those of installed programs."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Makes the pages; an editable installation has none, because they would not follow the tree."""
        if version == "editable":
            return
        self.folder = tempfile.TemporaryDirectory()
        environment = {**os.environ, "PYTHONPATH": self.root, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "nndeploy", "help", "--man", self.folder.name]
        subprocess.run(command, cwd=self.root, env=environment, check=True)
        pages = sorted(Path(self.folder.name).iterdir())
        build_data["shared_data"] |= {str(page): f"share/man/man1/{page.name}" for page in pages}

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Removes what was made; the wheel has it."""
        if version != "editable":
            self.folder.cleanup()
