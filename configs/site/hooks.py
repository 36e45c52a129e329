# SPDX-License-Identifier: Apache-2.0
"""Hooks of the site: it stands by itself, without the source tree and without a network.

Links that lead out of docs/ become names of files: `[the schema](../../nndeploy/bundle/manifest.schema.json)` becomes
"the schema (`nndeploy/bundle/manifest.schema.json`)". The site begins with the guide's first page. What the theme would
load from elsewhere is taken out, and a site in which anything is left of it is no site: the build fails.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(((?:\.\./)+[^)\s]+)\)")
FIRST_PAGE = '<!doctype html><title>nndeploy</title><meta http-equiv="refresh" content="0; url=guide/index.html">\n'
THEME_LOADS = re.compile(r'"https://unpkg\.com/[^"]*"')
"""In the theme's scripts: what it would load for diagrams, which the pages do not have, and for old browsers."""
LOADS = {
    ".html": re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>\s]*"),
    ".css": re.compile(r"(?:url\(|@import )[\"']?(?:https?:)?//[^)\s]*"),
    ".js": THEME_LOADS,
}


def on_files(files: Any, config: Any) -> Any:
    """Returns the files of the site with one more, which leads to the first page."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "index.html", content=FIRST_PAGE))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Returns a page in which what lies outside of docs/ is named, not linked."""
    return without_links_to_the_tree(markdown, page.file.src_uri)


def on_post_build(config: Any) -> None:
    """Takes out what the theme would load from elsewhere, and sees that nothing is left."""
    site = Path(config.site_dir)
    for script in site.rglob("*.js"):
        script.write_text(THEME_LOADS.sub('""', script.read_text(encoding="utf-8")), encoding="utf-8")
    found = loaded_from_elsewhere(site)
    if found:
        from mkdocs.exceptions import PluginError

        raise PluginError("the site would load from elsewhere: " + "; ".join(found))


def without_links_to_the_tree(markdown: str, page: str) -> str:
    """Returns the text of docs/`page` with the names of files in place of links that lead out of docs/."""

    def named(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), link[2]))
        if path.startswith("docs/"):
            return link[0]
        is_name = link[1].strip("`") in (path, posixpath.basename(path))
        return f"`{path}`" if is_name else f"{link[1]} (`{path}`)"

    return LINK.sub(named, markdown)


def loaded_from_elsewhere(site: Path) -> list[str]:
    """Returns what the files of a site would load over a network; a link that a reader may follow is none of it."""
    return [
        f"{file.relative_to(site)}: {found}"
        for file in sorted(site.rglob("*"))
        if file.suffix in LOADS
        for found in LOADS[file.suffix].findall(file.read_text(encoding="utf-8"))
    ]
