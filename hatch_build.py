# SPDX-License-Identifier: Apache-2.0
"""What the build of a wheel adds to the tree: kernel libraries, man pages, what TAB needs, and a description."""

import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

ARCH = "NNDEPLOY_KERNELS_ARCH"
"""The variable that names another architecture than this machine's."""

LINK = re.compile(r"(!?)\[([^\]]+)\]\((?![a-z]+:)([^)\s#]*)[^)\s]*\)")
"""A link of README.md into the tree, or a picture of it."""
PAGE = re.compile(r"docs/((?:guide|reference)/[\w-]+)\.md")


class Description(MetadataHookInterface):
    """README.md for who has no tree: links into it, which would be dead, become names of pages and files."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Adds the description."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": LINK.sub(_named, text)}


def _named(link: re.Match[str]) -> str:
    is_picture, text, path = link.groups()
    if is_picture:
        return ""
    if text.strip("`").replace("\\", "") == path:
        return f"`{path}`"
    page = PAGE.fullmatch(path)
    return f"{text} (`nndeploy help {page[1]}`)" if page else f"{text} (`{path}`)"


class Additions(BuildHookInterface):  # type: ignore[type-arg] # generic for its type checkers alone
    """Builds what a wheel holds beside the tree; a checkout that is installed gets the libraries of this machine."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Builds the libraries, where they are not up to date, and what is made of the commands."""
        self._add_libraries(build_data, is_editable=version == "editable")
        if version != "editable":  # a checkout's would not follow the tree
            self.made = tempfile.TemporaryDirectory()
            self._add_man_pages(build_data)
            self._add_completion_index(build_data)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Removes what was made; the wheel has it."""
        if version != "editable":
            self.made.cleanup()

    def _add_libraries(self, build_data: dict[str, Any], *, is_editable: bool) -> None:
        """Adds the libraries and says on which systems they run; of other systems the wheel has none."""
        sys.path.insert(0, str(Path(self.root, "backends")))
        from nndeploy_kernels.build import LIBRARIES, build_all, main
        from nndeploy_kernels.build_runtime import build_runner
        from nndeploy_kernels.build_systems import WINDOWS, build_system_runner
        from nndeploy_kernels.build_web import build_package
        from nndeploy_kernels.levels import GLIBC, LEVELS

        arch = os.environ.get(ARCH) or (platform.machine() if sys.platform == "linux" else sys.platform)
        known = sorted({level.arch for level in LEVELS})
        if arch not in known:
            reason = f"there are no kernels for {arch}, only for {', '.join(known)} with Linux"
            self.app.display_warning(f"the backend `native` is left out: {reason}")
            return
        if is_editable:
            main(["here"])
            return
        libraries = [*build_all(arch), build_runner(arch), *build_package()]
        if os.environ.get(ARCH) and WINDOWS.arch.startswith(arch):  # who builds for himself need not wait a minute more
            libraries.append(build_system_runner(WINDOWS))
        build_data["force_include"] |= {
            str(path): f"nndeploy_kernels/lib/{path.relative_to(LIBRARIES)}" for path in libraries
        }
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-manylinux_{GLIBC.replace('.', '_')}_{arch}"

    def _add_man_pages(self, build_data: dict[str, Any]) -> None:
        """Puts the man page of every command, made from its help, where `man` looks for those of installed programs."""
        self._run("-m", "nndeploy", "help", "--man", f"{self.made.name}/man")
        pages = sorted(Path(self.made.name, "man").iterdir())
        build_data["shared_data"] |= {str(page): f"share/man/man1/{page.name}" for page in pages}

    def _add_completion_index(self, build_data: dict[str, Any]) -> None:
        """Puts beside its reader what a shell completes from."""
        path = f"{self.made.name}/completion_index.json"
        write = "import sys, pathlib, nndeploy.cli.main as m, nndeploy.cli.help.completion_index as i"
        self._run("-c", f"{write}; i.write_index(m.cli, pathlib.Path(sys.argv[1]))", path)
        build_data["force_include"][path] = "nndeploy/cli/help/completion_index.json"

    def _run(self, *arguments: str) -> None:
        """Runs Python on the tree."""
        paths = [self.root, *filter(None, [os.environ.get("PYTHONPATH")])]  # by this pip shows what a build asked for
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
        subprocess.run([sys.executable, *arguments], cwd=self.root, env=environment, check=True)
