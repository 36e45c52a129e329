# SPDX-License-Identifier: Apache-2.0
"""The page shows models by targets, links to bundles that are there, loads nothing, and no name becomes part of it."""

import os
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from batch_examples import HOSTILE_NAMES, batch, every_status, finding, outcome

from nndeploy.farm.outcome import STATUSES
from nndeploy.farm.reports.batch import Batch
from nndeploy.farm.reports.page import batch_page

FLEET = Path("/fleet")
PAGE = FLEET / "report" / "index.html"


class Elements(HTMLParser):
    """Counts elements and their attributes, and keeps the cells of each row and all links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        self.rows: list[list[str]] = []
        self.links: list[str] = []
        self.is_in_cell = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts.update([tag, *(f"{tag} {name}" for name, _ in attrs)])
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self.is_in_cell = True
        elif tag == "small" and self.is_in_cell:
            self.rows[-1][-1] += " "
        self.links += [str(value) for name, value in attrs if name in ("href", "src")]

    def handle_endtag(self, tag: str) -> None:
        self.is_in_cell = self.is_in_cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self.is_in_cell:
            self.rows[-1][-1] += data


def page(made: Batch) -> str:
    return batch_page(made, PAGE, FLEET)


def test_models_stand_by_targets_with_speed_and_size() -> None:
    made = batch(
        outcome("a", "box", variant="fp16"), outcome("a", "host", "crash", variant="fp16"), outcome("b", "host", "hit")
    )
    rows = Elements(page(made)).rows
    assert ["model", "box", "host"] in rows
    assert ["a fp16", "ok 2 ms, 3.4 MB", "crash"] in rows
    assert ["b", "", "hit 2 ms, 3.4 MB"] in rows


def test_every_job_is_a_row_with_all_figures() -> None:
    rows = Elements(page(batch(outcome("a", "box"), outcome("b", status="timeout", error=None)))).rows
    told = ["2 ms", "3.4 MB", "1e-06", "native 75%, onnxruntime 25%", "1.5 s", "dist/a/box.nnd"]
    assert ["a", "box", "ok", *told] in rows
    assert ["b", "host", "timeout", "", "", "", "", "1.5 s", ""] in rows


def test_failures_and_findings_say_why() -> None:
    made = batch(outcome(status="failed"), findings=(finding(), finding("not-judged", text="1 job not judged: why")))
    rows = Elements(page(made)).rows
    why = "models/a.onnx: node 'Conv_3' has no weights export it again nndeploy compile a.onnx -o out.nnd"
    assert ["a", "host", "failed", why] in rows
    assert ["slowdown", "a", "host", "latency grew from 2 ms to 3 ms"] in rows
    assert ["not-judged", "a", "host", "1 job not judged: why"] in rows


@pytest.mark.parametrize(("output", "link"), [
    ("dist/a.nnd", "./../dist/a.nnd"), ("report/a b#1?.nnd", "./a%20b%231%3F.nnd"),
    ("javascript:alert(1)", "./../javascript%3Aalert%281%29"), ("/other/a.nnd", "./../../other/a.nnd"),
    ("//e.example/a.nnd", "./../../e.example/a.nnd"), ("../out/\udcff.nnd", "./../../out/%FF.nnd"),
])  # fmt: skip
def test_bundles_are_links_that_lead_to_their_files(output: str, link: str) -> None:
    links = set(Elements(page(batch(outcome(output=output)))).links)
    assert links == {link}
    found = unquote(urlsplit(link).path, errors="surrogateescape")
    assert os.path.realpath(PAGE.parent / found) == os.path.realpath(FLEET / output.replace("//", "/"))


def test_only_what_was_built_is_a_link() -> None:
    made = batch(*(outcome(f"m{i}", status=status, output="dist/x.nnd") for i, status in enumerate(STATUSES)))
    assert len(Elements(page(made)).links) == 2 * 2  # built and hit, in both tables


def test_a_skipped_job_links_the_bundle_that_is_there() -> None:
    left = [
        outcome(name, status="skipped", output=f"dist/{name}.nnd", size=size) for name, size in (("a", 9), ("b", 0))
    ]
    text = page(batch(*left))
    assert "dist/a.nnd" in text
    assert "dist/b.nnd" not in text


def test_names_are_text_everywhere() -> None:
    plain, text = page(every_status()), page(every_status(HOSTILE_NAMES))
    assert Elements(text).counts == Elements(plain).counts
    assert "\x1b" not in text
    assert text.count("&lt;script&gt;alert(1)") > 20
    assert "\\ud800" in text  # what is no Unicode is shown as an escape
    text.encode("utf-8")


def test_the_page_loads_nothing_and_has_every_place_filled() -> None:
    text = page(every_status())
    assert "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'" in text
    assert not re.search(r"https?:|url\(|@import|\bsrc=", text)
    assert not re.search(r"@[a-z]+@", text)
    assert text.count("<script") == 1


def test_a_batch_without_failures_or_findings_has_no_cards_of_them() -> None:
    text = page(batch(outcome()))
    assert "What failed" not in text
    assert "<h2>Gates</h2>" not in text
    assert "1 job, 0 failed" in text
