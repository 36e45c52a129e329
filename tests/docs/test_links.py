# SPDX-License-Identifier: Apache-2.0
"""Every relative link in the README and in docs/ leads to a file of the tree."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CODE_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def links(page: Path) -> list[str]:
    """Returns the targets of the page's links that lead into the tree, without their fragment."""
    targets = re.findall(r"\]\(([^)\s]+)\)", CODE_BLOCK.sub("", page.read_text()))
    return [target.partition("#")[0] for target in targets if not re.match(r"[a-z]+:|#", target)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    assert [link for link in links(page) if not (page.parent / link).exists()] == []


def test_every_page_of_docs_can_be_reached_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached and page.is_file():
            reached.add(page)
            waiting += [(page.parent / link).resolve() for link in links(page) if link.endswith(".md")]
    assert [page.name for page in PAGES if page not in reached] == []
