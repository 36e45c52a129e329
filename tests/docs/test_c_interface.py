# SPDX-License-Identifier: Apache-2.0
"""The page on the C interface shows the header that is built."""

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_holds_the_header_as_it_is() -> None:
    header = (ROOT / "backends/nndeploy_kernels/runtime/nndeploy.h").read_text(encoding="utf-8")
    assert f"```c\n{header}```\n" in (ROOT / "docs/reference/c-interface.md").read_text(encoding="utf-8")
