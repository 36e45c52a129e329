# SPDX-License-Identifier: Apache-2.0
"""The summary reads as it was meant by a parser of Markdown, whatever jobs are called, and is cut by whole rows."""

import re

from batch_examples import HOSTILE, HOSTILE_NAMES, batch, every_status, finding, outcome
from markdown_it import MarkdownIt
from markdown_it.token import Token

from nndeploy.farm.reports.batch import Batch
from nndeploy.farm.reports.markdown import markdown

PARSER = MarkdownIt("commonmark").enable("table")


def text_of(made: Batch) -> str:
    return markdown(made).decode("utf-8")


def structure(text: str) -> list[str]:
    """Returns the kinds of all tokens; neighbours of the same kind, such as two pieces of text, are one."""
    kinds = [kind for token in PARSER.parse(text) for kind in _kinds(token)]
    return [kind for before, kind in zip(["", *kinds], kinds, strict=False) if kind != before or kind != "text"]


def _kinds(token: Token) -> list[str]:
    named = f"{token.type} {token.content}" if token.type == "html_inline" else token.type
    inner = [kind for child in token.children or () for kind in _kinds(child)]
    return [named, *inner]


def shown(text: str) -> str:
    """Returns the text that a reader sees."""
    html = PARSER.render(text)
    return re.sub(r"&(amp|lt|gt|quot);", lambda found: {"amp": "&", "lt": "<", "gt": ">", "quot": '"'}[found[1]], html)


def rows_of(text: str) -> list[list[str]]:
    html = PARSER.render(text)
    return [re.findall(r"<t[hd]>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", html, re.DOTALL)]


def test_failures_come_first_then_gates_counts_and_the_table() -> None:
    text = text_of(every_status())
    title = "## Batch: 20 jobs, 12 failed, 1 failed gate"
    parts = (title, "### What failed", "### Gates and warnings", "2 ok, 2 hit, 2 failed", "### Models by targets")
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_a_failure_has_its_error_and_the_command_that_repeats_it() -> None:
    html = shown(text_of(batch(outcome(status="failed"))))
    assert "error[bad-model]: models/a.onnx: node 'Conv_3' has no weights (hint: export it again)" in html
    assert '<pre><code class="language-sh">nndeploy compile a.onnx -o out.nnd\n</code></pre>' in html


def test_the_table_is_models_by_targets() -> None:
    made = batch(
        outcome("a", "box", variant="fp16"), outcome("a", "host", "crash", variant="fp16"),
        outcome("b", "host", "hit", latency_ms=None), outcome("c", "box", "skipped"),
    )  # fmt: skip
    assert rows_of(text_of(made)) == [
        ["model", "<code>box</code>", "<code>host</code>"],
        ["<code>a/fp16</code>", "ok 2 ms", "<strong>crash</strong>"],
        ["<code>b</code>", "", "hit"],
        ["<code>c</code>", "skipped", ""],
    ]


def test_names_change_nothing_but_text() -> None:
    plain = structure(text_of(every_status()))
    hostile = text_of(every_status(HOSTILE_NAMES))
    assert structure(hostile) == plain
    assert set(re.findall("<[^>]*>", re.sub("```.*?```", "", hostile, flags=re.DOTALL))) == {"<code>", "</code>"}
    assert "\x1b" not in hostile
    outside = re.sub("`{3,}sh.*?\n *`{3,}\n", "", hostile, flags=re.DOTALL)
    for name in re.findall("<code>(.*?)</code>", outside):
        assert not re.search(r"www\.|://|[]\[<>&|`*~$@#\\{}]", re.sub(r"&#\d+;", "", name))


def test_a_hostile_name_is_shown_as_it_is() -> None:
    html = shown(text_of(batch(outcome("a|b`c<i>_d_\\|e.onnx"))))
    assert "a|b`c<i>_d_\\|e.onnx" in html


def test_a_command_cannot_leave_its_block() -> None:
    command = "nndeploy compile '```\n</code>````' -o x"
    html = PARSER.render(text_of(batch(outcome(status="crash", repeat=command))))
    assert "<pre><code class=\"language-sh\">nndeploy compile '```\\n&lt;/code&gt;````' -o x\n</code></pre>" in html
    html = PARSER.render(text_of(batch(outcome(status="crash", repeat="```"))))
    assert '<pre><code class="language-sh">```\n</code></pre>' in html


def test_too_much_is_cut_by_whole_rows_and_said() -> None:
    jobs = [outcome(f"model-{number}", f"box-{number % 3}", "crash") for number in range(200)]
    made = batch(*jobs, findings=(finding(),) * 300)
    whole = text_of(made)
    limit = len(whole) // 3
    cut = markdown(made, limit).decode("utf-8")
    assert len(cut) <= limit
    left = {what: int(count.replace(",", "")) for count, what in re.findall(r"no room for ([\d,]+) more (\w+)s\.", cut)}
    assert left.keys() == {"failure", "finding", "model"}
    kept = len(re.findall(r"^- \*\*crash\*\*", cut, re.MULTILINE))
    assert 10 < kept == 200 - left["failure"]
    assert 10 < len(re.findall(r"^- \*\*slowdown\*\*", cut, re.MULTILINE)) == 300 - left["finding"]
    rows = [line for line in cut.splitlines() if line.startswith("| <code>model")]
    assert 10 < len(rows) == 200 - left["model"]
    assert set(rows) <= set(whole.splitlines())
    assert "no room" not in whole


def test_every_limit_holds_and_ten_thousand_jobs_are_below_one_mebibyte() -> None:
    made = every_status(HOSTILE_NAMES)
    for limit in range(2000, 60_000, 4000):
        assert len(markdown(made, limit)) <= limit
    made = batch(*(outcome(f"{HOSTILE}-{number}", status="crash") for number in range(10_000)))
    assert 900_000 < len(markdown(made)) <= 1 << 20


def test_a_batch_without_failures_has_no_section_of_them() -> None:
    text = text_of(batch(outcome()))
    assert "## Batch: 1 job, none failed" in text
    assert "What failed" not in text
    assert "Gates" not in text
    assert "1 ok; 12 s." in text
