# SPDX-License-Identifier: Apache-2.0
"""The page on the C interface shows the header that is built."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_holds_the_header_as_it_is() -> None:
    header = (ROOT / "backends/nndeploy_kernels/runtime/nndeploy.h").read_text(encoding="utf-8")
    assert f"```c\n{header}```\n" in (ROOT / "docs/reference/c-interface.md").read_text(encoding="utf-8")


def test_the_shared_library_gives_every_function_of_the_header() -> None:
    folder = ROOT / "backends/nndeploy_kernels/runtime"
    header = re.sub(r"/\*.*?\*/", "", (folder / "nndeploy.h").read_text(encoding="utf-8"), flags=re.DOTALL)
    declared = set(re.findall(r"\b(nnd_\w+)\(", header))
    assert "nnd_set_image" in declared
    assert declared == set(re.findall(r"\b(nnd_\w+);", (folder / "exports.txt").read_text(encoding="utf-8")))
