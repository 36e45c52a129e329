# SPDX-License-Identifier: Apache-2.0
"""The site has every page of docs/, stands without the tree and without a network, and CI builds it."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONFIG = (ROOT / "configs" / "site" / "mkdocs.yml").read_text()
BUILT = ROOT / "build" / "site"


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_hooks", ROOT / "configs" / "site" / "hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_has_its_place_in_the_navigation() -> None:
    listed = re.findall(r"^ +- ([\w/-]+\.md)$", CONFIG, re.MULTILINE)
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert sorted(listed) == sorted(pages)


def test_no_font_comes_from_elsewhere() -> None:
    assert re.search(r"^  font: false$", CONFIG, re.MULTILINE)


def test_ci_builds_it() -> None:
    assert "docs" in (ROOT / ".ci" / "run").read_text().split()


def test_links_out_of_docs_become_names_of_files(hooks: ModuleType) -> None:
    text = "[code](../../nndeploy/a.py), [a.py](../../nndeploy/a.py), [there](../guide/ci.md), ![a](../../b.svg)"
    shown = hooks.without_links_to_the_tree(text, "reference/exit-codes.md")
    assert shown == "code (`nndeploy/a.py`), `nndeploy/a.py`, [there](../guide/ci.md), ![a](../../b.svg)"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<script src="https://cdn.example/x.js"></script>'),
        ("a.html", "<link rel=stylesheet href=//fonts.example/css>"),
        ("a.html", '<img alt="" src="http://example/x.png">'),
        ("a.css", "@font-face { src: url(https://fonts.example/x.woff2) }"),
        ("a.js", 'load("https://unpkg.com/mermaid")'),
    ],
)
def test_what_would_be_loaded_from_elsewhere_is_found(name: str, text: str, hooks: ModuleType, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert len(hooks.loaded_from_elsewhere(tmp_path)) == 1


def test_a_link_that_readers_may_follow_loads_nothing(hooks: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="https://ui.perfetto.dev">Perfetto</a><script src="../x.js"></script>')
    assert hooks.loaded_from_elsewhere(tmp_path) == []


@pytest.mark.skipif(not BUILT.exists(), reason="`make docs` has not built the site")
def test_the_built_site_loads_nothing_from_elsewhere(hooks: ModuleType) -> None:
    assert len(list(BUILT.rglob("*.html"))) > len(list((ROOT / "docs").rglob("*.md")))
    assert hooks.loaded_from_elsewhere(BUILT) == []
