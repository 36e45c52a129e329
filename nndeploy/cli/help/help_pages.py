# SPDX-License-Identifier: Apache-2.0
"""The pages that `nndeploy help` shows: those of docs/guide and docs/reference, which travel in the package.

A page is called by the name of its file; one that is called like a command, by its folder too: reference/targets.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).resolve().parents[2]
SECTIONS = ("guide", "reference")


@dataclass(frozen=True, slots=True)
class Page:
    """A page of Markdown: `path` is its file."""

    section: str
    path: Path

    @property
    def name(self) -> str:
        """What it is called by."""
        return self.path.stem

    @property
    def full_name(self) -> str:
        """The same with its section, which no command is called."""
        return f"{self.section}/{self.path.stem}"

    @property
    def text(self) -> str:
        """Its Markdown."""
        return self.path.read_text(encoding="utf-8")


def pages() -> list[Page]:
    """Returns all pages, section by section, sorted by name; none where the package was put together without."""
    return [page for section in SECTIONS for page in _pages(section)]


def _pages(section: str) -> Iterator[Page]:
    for folder in (_HERE / "pages" / section, _HERE.parent / "docs" / section):
        if folder.is_dir():
            return (Page(section, path) for path in sorted(folder.glob("*.md")))
    return iter(())


def page_called(name: str) -> Page | None:
    """Returns the page of a name, with or without its section."""
    return next((page for page in pages() if name in (page.name, page.full_name)), None)


def topics(commands: Collection[str]) -> dict[str, Page]:
    """Returns the pages by the shortest name that shows each of them, and none of the commands."""
    return {page.full_name if page.name in commands else page.name: page for page in pages()}


def title(markdown: str) -> str:
    """Returns the first heading of a page as plain text, "" where it has none."""
    heading = re.search(r"^# +(.+)$", markdown, re.MULTILINE)
    return _plain(heading[1]).strip() if heading else ""


def _plain(markdown: str) -> str:
    return re.sub(r"[`*]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", markdown))


def with_topics_for_links(markdown: str, known: dict[str, Page]) -> str:
    """Returns a page whose links to other pages name the topic that shows them, and whose other links are text."""
    names = {page.path.name: name for name, page in known.items()}

    def told(link: re.Match[str]) -> str:
        text, target = link[1], link[2].partition("#")[0]
        if re.match(r"[a-z]+:", target):
            return link[0]
        name = names.get(target.rpartition("/")[2])
        return f"{text} (`nndeploy help {name}`)" if name else text

    return re.sub(r"(?<!!)\[([^]]*)\]\(([^)\s]+)\)", told, markdown)
