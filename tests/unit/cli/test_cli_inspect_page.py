# SPDX-License-Identifier: Apache-2.0
"""The page shows every node with its reasons, and no name from a model becomes part of it."""

import json
import re
from html.parser import HTMLParser

import pytest

from nndeploy.bundle.manifest import Manifest, NamedType
from nndeploy.bundle.report import NodeReport, Report, SubmodelReport
from nndeploy.cli.pages.inspect_page import inspect_page
from nndeploy.values.types import TensorType

HOSTILE = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;@data@@title@\x1b[31m\u2028"
F32 = TensorType("float32", ("N", 3))


def page(nodes, *, name="small", inputs=("x",), outputs=("y",), aliases=None, submodels=(), fused=None) -> str:
    manifest = Manifest(
        model_name=name, model_sha256="0" * 64, inputs=tuple(NamedType(item, F32) for item in inputs),
        outputs=tuple(NamedType(item, F32) for item in outputs), submodels=(), values={}, aliases=aliases or {},
        provenance={"tools": {"nndeploy": "1.2.3"}},
    )  # fmt: skip
    report = Report(
        model="m", objective="priority", backends=("one", "two"), nodes=tuple(nodes), submodels=tuple(submodels)
    )
    return inspect_page(manifest, report, 1234, fused or {})


def node(name, inputs, outputs, backend="one", submodel="s0", share=0.5, refusals=None):
    return NodeReport(name, "Conv", backend, submodel, share, inputs, outputs, refusals or {})


class Tags(HTMLParser):
    """Counts elements, and collects the text of scripts and every attribute."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}
        self.attributes: set[str] = set()
        self.scripts: list[str] = []
        self._is_script = False
        self.feed(text)

    def handle_starttag(self, tag, attrs) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.attributes |= {name for name, _ in attrs}
        self._is_script = tag == "script"

    def handle_data(self, data) -> None:
        if self._is_script:
            self.scripts.append(data)
            self._is_script = False


def data_of(text: str):
    return json.loads(Tags(text).scripts[0])


def test_every_node_is_drawn_and_listed_with_its_reasons() -> None:
    text = page(
        [
            node("first", ("x",), ("h",)),
            node("second", ("h",), ("y",), "two", "s1", 0.25, {"one": "has no Conv like this"}),
        ],
        submodels=[SubmodelReport("s1", "two", 1, 0.25, {"one": "too odd"})],
    )
    assert text.count('<g class="node"') == 2
    assert text.count('<g class="node port"') == 2
    assert text.count('<path class="edge cross"') == 1
    assert text.count('<path class="edge"') == 2
    for part in ("has no Conv like this", "too odd", "1.2.3", "1.2 kB", "1 node, 25.0% of the compute"):
        assert part in text
    assert data_of(text)[2]["reasons"] == [["one", "has no Conv like this"]]


def test_the_legend_has_backends_with_nodes_alone() -> None:
    assert page([node("n", ("x",), ("y",))]).count('<button class="legend"') == 1


def test_no_button_lies_on_the_graph() -> None:
    text = page([node("n", ("x",), ("y",))])
    assert "<button" not in text[text.index('<div id="graph">') : text.index("</svg>")]


def test_names_from_models_are_text_everywhere() -> None:
    plain = Tags(page([node("n", ("x",), ("y",), refusals={"two": "no"})]))
    hostile_node = NodeReport(HOSTILE, HOSTILE, "one", HOSTILE, 0.5, ("x",), ("y",), {HOSTILE: HOSTILE})
    text = page([hostile_node], name=HOSTILE, outputs=("y",))
    found = Tags(text)
    assert found.counts == plain.counts
    assert found.attributes == plain.attributes
    assert "\x1b" not in text
    shown = dict(data_of(text)[1]["facts"])
    assert shown["name"].startswith("</script><script>alert(1)")


def test_fused_steps_stand_as_text_with_their_submodel() -> None:
    nodes, submodels = [node("n", ("x",), ("y",))], [SubmodelReport("s0", "one", 1, 1.0, {})]
    text = page(nodes, submodels=submodels, fused={"s0": ["separable, 1x8x32", HOSTILE]})
    assert "<b>fused:</b> separable, 1x8x32</div>" in text
    assert Tags(text).counts["script"] == 2
    assert "<img" not in text


def test_hostile_inputs_and_backends_are_text_too() -> None:
    text = page([node("n", (HOSTILE,), ("y",), backend=HOSTILE)], inputs=(HOSTILE,))
    assert Tags(text).counts["script"] == 2
    assert "<img" not in text


def test_the_page_needs_no_network() -> None:
    text = page([node("n", ("x",), ("y",))])
    assert "default-src 'none'" in text
    assert re.findall(r"""(?:src|href|url|import)\s*[=(]\s*["']?(?!http://www\.w3\.org)[a-z]+:""", text) == []
    assert set(re.findall(r"https?://[^\s\"']+", text)) == {"http://www.w3.org/2000/svg"}


def test_an_alias_leads_from_input_to_output() -> None:
    text = page([], outputs=("same",), aliases={"same": "x"})
    assert text.count('<path class="edge"') == 1


def test_a_graph_that_lies_about_its_order_is_still_drawn() -> None:
    nodes = [node("a", ("b_out",), ("a_out",)), node("b", ("a_out", "nowhere"), ("b_out",)), node("c", ("c",), ("c",))]
    text = page(nodes, outputs=())
    assert text.count('<g class="node"') == 3


@pytest.mark.parametrize("count", [0, 1, 900])
def test_any_number_of_nodes_is_drawn(count) -> None:
    nodes = [node(f"n{i}", (f"v{i - 1}" if i else "x", f"v{i // 2 - 1}"), (f"v{i}",)) for i in range(count)]
    text = page(nodes)
    assert text.count('<g class="node"') == count
    assert len(text) < 3_000_000
