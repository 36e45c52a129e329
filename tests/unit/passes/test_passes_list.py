# SPDX-License-Identifier: Apache-2.0
"""The list of passes as a whole: names, reports, checks around each pass, speed."""

import onnx_ir as ir
import pytest
from passes_harness import graph

from nndeploy.bundle.report import PassReport
from nndeploy.errors import NndeployError
from nndeploy.passes import OPTIMISATIONS, optimise
from nndeploy.passes.model_pass import ModelPass

TINY = "(float[2] x) => (float[2] y) { a = Identity(x) y = Relu(a) }"


class Renames(ModelPass):
    name = "renames"

    def rewrite(self, model: ir.Model) -> int:
        model.graph.outputs[0].name = "other"
        return 1


class ReadsTooEarly(ModelPass):
    name = "reads-too-early"

    def rewrite(self, model: ir.Model) -> int:
        first, last = model.graph[0], model.graph[-1]
        model.graph.remove(first)
        last.append(first)
        return 1


class LeavesReader(ModelPass):
    name = "leaves-reader"

    def rewrite(self, model: ir.Model) -> int:
        extra = ir.Node("", "Neg", [model.graph.inputs[0]], name="gone")
        extra.outputs[0].name = "gone"
        return 1


class Fails(ModelPass):
    name = "fails"

    def rewrite(self, model: ir.Model) -> int:
        raise ZeroDivisionError("by nothing")


class AlwaysChanges(ModelPass):
    name = "always-changes"

    def __init__(self) -> None:
        self.num_runs = 0

    def rewrite(self, model: ir.Model) -> int:
        self.num_runs += 1
        return 1


def test_report_counts_every_pass_in_the_order_of_the_list() -> None:
    reports = optimise(graph(TINY))
    assert [report.name for report in reports] == [optimisation.name for optimisation in OPTIMISATIONS]
    assert PassReport("eliminate-no-ops", 1) in reports
    assert sum(report.count for report in reports) == 1


def test_stops_as_soon_as_every_pass_was_idle() -> None:
    model = graph("(float[2] x) => (float[2] y) { y = Relu(x) }")
    runs: list[str] = []

    class Idle(ModelPass):
        def __init__(self, name: str, counts: list[int]) -> None:
            self.name, self.counts = name, counts  # type: ignore[misc]

        def rewrite(self, model: ir.Model) -> int:
            runs.append(self.name)
            return self.counts.pop() if self.counts else 0

    optimise(model, passes=(Idle("a", []), Idle("b", [1]), Idle("c", [])))
    assert runs == ["a", "b", "c", "a", "b"]


def test_rounds_are_bounded() -> None:
    endless = AlwaysChanges()
    optimise(graph(TINY), passes=(endless,), max_rounds=4)
    assert endless.num_runs == 4


@pytest.mark.parametrize(
    ("broken", "message"),
    [(Renames(), "renames broke the graph: the graph's outputs changed from y: .* to other: .*"),
     (ReadsTooEarly(), "reads-too-early broke the graph: value 'a' is read by node .* before anything produces it"),
     (LeavesReader(), "leaves-reader broke the graph: value 'x' is read 1 times but counts 2"),
     (Fails(), "fails failed: ZeroDivisionError: by nothing")],
    ids=lambda value: value.name if isinstance(value, ModelPass) else "",
)  # fmt: skip
def test_failure_names_the_pass_and_the_passes_before(broken: ModelPass, message: str) -> None:
    idle = OPTIMISATIONS[1]
    with pytest.raises(NndeployError, match=message) as raised:
        optimise(graph(TINY), passes=(idle, broken))
    assert raised.value.exit_code == 70
    assert f"after {idle.name}" in str(raised.value)


def test_model_that_came_in_broken_is_reported_as_such() -> None:
    model = graph(TINY)
    ReadsTooEarly().rewrite(model)
    with pytest.raises(NndeployError, match="the model that came in is not in order: value 'a' is read") as raised:
        optimise(model)
    assert raised.value.where == "optimise, before any other pass"
