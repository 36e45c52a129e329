# SPDX-License-Identifier: Apache-2.0
"""What each pass makes of small graphs, by the table in `rewrites.txt`, and that their outputs stay.

Under the name of a pass (`# name`) and a line of words stand graphs, indented. A graph is followed by `= ` with the
count of changed places, the nodes, the new constants, and those that are gone; without it, the graph stays as it is.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
import pytest
from passes_harness import assert_close, constants, graph, nodes, random_feeds, rewritten, run_reference

CONTRIB = ', "com.microsoft": 1'


def _cases() -> Iterator[Any]:
    name = words = ""
    lines: list[str] = []
    table = Path(__file__).with_name("rewrites.txt").read_text(encoding="utf-8")
    for line in [*table.splitlines(), ""]:
        if line.startswith("    "):
            lines[-1] += " " + line.strip()
        elif line.startswith("  = "):
            lines[-1] += line.rstrip()
        elif line.startswith("  "):
            lines.append(line.strip())
        else:
            for number, text in enumerate(lines):
                body, _, wanted = text.partition("  = ")
                yield pytest.param(name, body, wanted, id=f"{name}: {words} {number}")
            lines, name, words = [], line[2:] if line.startswith("# ") else name, line


def _model(text: str) -> ir.Model:
    if text.startswith("<"):
        return ir.from_proto(onnx.parser.parse_model(text))
    opset, body = re.fullmatch(r"(?:opset (\d+) )?(.*)", text).groups()  # type: ignore[union-attr]
    return graph(body, opset=int(opset or 17), domains=CONTRIB if "com.microsoft" in text else "")


@pytest.mark.parametrize(("name", "text", "wanted"), [*_cases()])
def test_rewrite(name: str, text: str, wanted: str) -> None:
    model = _model(text)
    before, first = ir.to_proto(model), list(model.graph.initializers)
    count = rewritten(name, model)
    if not wanted:
        assert count == 0
        return
    left = constants(model)
    made = [f"{key} = {value}" for key, value in left.items() if key not in first]
    gone = [f"-{key}" for key in first if key not in left]
    assert f"{count}: {'; '.join([*nodes(model), *made, *gone])}" == wanted
    after = ir.to_proto(model)
    feeds = random_feeds(before)
    try:
        outputs = run_reference(before, feeds)
    except (RuntimeError, ValueError, IndexError):  # no such operator, or drawn places that are none
        return
    onnx.checker.check_model(after)
    for got, want in zip(run_reference(after, feeds), outputs, strict=True):
        assert_close(got, want, 1e-5)
