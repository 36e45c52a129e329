# SPDX-License-Identifier: Apache-2.0
"""`--objective latency`: which placements are measured, and what the chosen one keeps of what the user asked."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from compile_with import compile_with
from faulty_backends import Install, changed_backend, choosy_backend, good_backend

from nndeploy.bundle.manifest import Variant
from nndeploy.bundle.reader import open_bundle
from nndeploy.bundle.report import Report
from nndeploy.jobs.measuring import Measured
from nndeploy.jobs.workers import InProcessWorkers
from nndeploy.options.texts import names_in
from nndeploy.plugin.interface import Artifact

TEXT = """<ir_version: 8, opset_import: ["": 18]>
two (float[256,512] x) => (float[256,512] y) {
    [left] h = MatMul(x, a)
    [right] y = Gemm(h, b)
}"""
TWO_ROWS = """<ir_version: 8, opset_import: ["": 18]>
two (float[N,512] x) => (float[N,512] y) { y = Relu(x) }"""
TWO_PASSES = """<ir_version: 8, opset_import: ["": 18]>
two (float[256,512] x) => (float[256,512] y) { h = Identity(x)  g = Relu(h)  y = Relu(g) }"""
SAMPLE = {"x": np.random.default_rng(0).standard_normal((256, 512)).astype(np.float32)}


def model() -> onnx.ModelProto:
    """Returns two products, each heavy enough to be worth a submodel of its own."""
    made = onnx.parser.parse_model(TEXT)
    random = np.random.default_rng(1)
    for name in "ab":
        weights = random.standard_normal((512, 512)).astype(np.float32) / 32
        made.graph.initializer.append(onnx.numpy_helper.from_array(weights, name))
    return made


class LateTortoise(InProcessWorkers):
    """Says that the tortoise takes 10 ms for each node, and a submodel of others 1 ms."""

    def measure(self, paths: Any, samples: Any, options: Any) -> Measured:
        return Measured([[sum(map(_ms, first_variants(path)))] * len(samples) for path in paths])


def _ms(variant: Variant) -> float:
    return 10.0 * variant.metadata["num_nodes"] if variant.backend == "tortoise" else 1.0


def compiled(path: Path, backends: str, **options: Any) -> Report:
    return compile_with(
        model(), path, backends=names_in(backends), objective="latency", samples=[SAMPLE], optimise=False, **options,
        workers=LateTortoise(),
    )  # fmt: skip


def chosen(report: Report) -> str:
    return next(candidate.name for candidate in report.candidates if candidate.chosen)


def first_variants(path: Path) -> list[Variant]:
    with open_bundle(path) as bundle:
        return [submodel.variants[0] for submodel in bundle.manifest.submodels]


def first_backend(path: Path) -> str:
    return first_variants(path)[0].backend


def backend_of(report: Report) -> dict[str, str]:
    return {node.name: node.backend for node in report.nodes}


def counting_backend(name: str, tier: int) -> type:
    """Returns a good backend that notes how many nodes a submodel has."""

    class Counting(good_backend()):
        def build(self, submodel: Any, *rest: Any) -> Artifact:
            return replace(super().build(submodel, *rest), metadata={"num_nodes": len(submodel.graph)})

    Counting.name, Counting.tier = name, tier
    return Counting


@pytest.fixture
def two_fast_halves(install: Install) -> None:
    """Installs one slow backend for the whole, and two fast ones for one half each that come after it."""
    install(counting_backend("tortoise", 0), choosy_backend("hare", 3, "MatMul"), choosy_backend("dog", 3, "Gemm"))


@pytest.mark.usefixtures("two_fast_halves")
def test_backends_that_take_a_part_are_measured_before_and_beside_the_others(tmp_path) -> None:
    report = compiled(tmp_path / "m.nnd", "tortoise,hare,dog")
    names = [candidate.name for candidate in report.candidates]
    assert names[:3] == ["tortoise", "hare first", "dog first"]
    assert len(names) > 3
    assert backend_of(report) == {"left": "hare", "right": "dog"}
    assert " on " in chosen(report)


def test_what_a_backend_leaves_is_tried_on_each_library(tmp_path, install) -> None:
    """The library that stands first is slow at what is left, and another one is not."""
    tortoise, hare = counting_backend("tortoise", 1), choosy_backend("hare", 3, "MatMul")
    install(tortoise, hare)
    report = compiled(tmp_path / "m.nnd", "tortoise,hare,onnxruntime")
    names = [candidate.name for candidate in report.candidates]
    assert "hare, then onnxruntime" in names
    assert "tortoise" not in backend_of(report).values()


@pytest.mark.usefixtures("two_fast_halves")
def test_pins_hold_in_every_candidate(tmp_path) -> None:
    report = compiled(tmp_path / "m.nnd", "tortoise,hare,dog", pins=[("right", "tortoise")])
    assert backend_of(report)["right"] == "tortoise"
    assert not any(" on dog" in candidate.name or candidate.name == "dog first" for candidate in report.candidates[1:])


def test_candidates_are_compared_at_shapes_drawn_from_the_ranges(tmp_path, install) -> None:
    """A backend that is fast at the size to tune for alone loses; the report says at which shapes."""

    class OfManyRows(InProcessWorkers):
        def measure(self, paths: Any, samples: Any, options: Any) -> Measured:
            rows = [sample["x"].shape[0] for sample in samples]
            names = [first_backend(path) for path in paths]
            return Measured([[1.0 if name == "onnxruntime" or count == 4 else 3.0 for count in rows] for name in names])

    install(changed_backend("hare", 0, lambda outputs: outputs))
    report = compile_with(
        onnx.parser.parse_model(TWO_ROWS), tmp_path / "m.nnd", backends=("hare", "onnxruntime"), objective="latency",
        shapes={"N": "1..64:4"}, workers=OfManyRows(),
    )  # fmt: skip
    assert chosen(report) == "onnxruntime"
    assert report.measured_shapes[:3] == ("x[4,512]", "x[1,512]", "x[64,512]")
    assert len(report.measured_shapes) == 5
    hare = next(candidate for candidate in report.candidates if candidate.name == "hare")
    assert hare.shape_ms == (1.0, 3.0, 3.0, 3.0, 3.0)
    assert hare.median_ms == pytest.approx(3.0**0.8, rel=1e-3)


def chosen_where_sizes_are_open(path: Path, hare_ms: dict[int, float], **options: Any) -> Report:
    """Compiles for a backend in the first tier that takes `hare_ms` at each number of rows, where others take 1 ms."""

    class OfManyRows(InProcessWorkers):
        def measure(self, paths: Any, samples: Any, options: Any) -> Measured:
            rows = [sample["x"].shape[0] for sample in samples]
            names = [first_backend(path) for path in paths]
            return Measured([[1.0 if name == "onnxruntime" else hare_ms[count] for count in rows] for name in names])

    text = TWO_ROWS.replace("N,512", "length,512")
    asked = {"backends": ("hare", "onnxruntime"), "objective": "latency", **options}
    return compile_with(onnx.parser.parse_model(text), path, **asked, workers=OfManyRows())


def test_open_sizes_that_were_made_up_are_measured_around_the_likely_one(tmp_path, install) -> None:
    install(changed_backend("hare", 0, lambda outputs: outputs))
    report = chosen_where_sizes_are_open(tmp_path / "m.nnd", {64: 0.9, 16: 1.3, 256: 2.0})
    assert report.measured_shapes == ("x[64,512]", "x[16,512]", "x[256,512]")
    assert chosen(report) == "onnxruntime"
    given = {"x": np.ones((64, 512), np.float32)}
    report = chosen_where_sizes_are_open(tmp_path / "m.nnd", {64: 0.9}, samples=[given])
    assert report.measured_shapes == ("x[64,512]",)
    assert chosen(report) == "hare"


def test_candidates_are_compared_at_the_shapes_of_the_given_samples(tmp_path, install) -> None:
    install(changed_backend("hare", 0, lambda outputs: outputs))
    rows = [3, 5, 3, *range(10, 20)]
    report = compile_with(
        onnx.parser.parse_model(TWO_ROWS), tmp_path / "m.nnd", backends=("hare", "onnxruntime"), objective="latency",
        shapes={"N": "1..64"}, samples=[{"x": np.ones((count, 512), np.float32)} for count in rows],
    )  # fmt: skip
    assert report.measured_shapes == tuple(f"x[{count},512]" for count in [3, 5, *range(10, 16)])
    assert len(report.candidates[0].shape_ms) == 8


TWIN_MS = {"busy": ((3.0, 0.08), (3.1, 0.3)), "busy once": ((3.0, 0.08), (0.09, 0.08)), "alike": ((3.0, 0.08),) * 2}


@pytest.mark.parametrize(("races", "winner", "is_measured"), [
    ("busy", "onnxruntime", False), ("busy once", "onnxruntime, as exported", True),
    ("alike", "onnxruntime, as exported", True)
])  # fmt: skip
def test_a_race_that_contradicts_itself_is_run_again_and_then_the_prediction_decides(
    tmp_path, races, winner, is_measured
) -> None:
    """One engine takes 3 ms for the optimised graph and 0.08 ms for the one that was exported."""
    left = list(TWIN_MS[races])

    class Busy(InProcessWorkers):
        def measure(self, paths: Any, samples: Any, options: Any) -> Measured:
            return Measured([[ms] * len(samples) for ms in left.pop(0)], waited=0.6)

    report = compile_with(
        onnx.parser.parse_model(TWO_PASSES), tmp_path / "m.nnd", backends=("onnxruntime",), samples=[SAMPLE],
        objective="latency", workers=Busy(),
    )  # fmt: skip
    assert not left
    assert chosen(report) == winner
    assert all((candidate.median_ms is not None) == is_measured for candidate in report.candidates)
    assert any("busy" in warning for warning in report.warnings) != is_measured


def test_a_race_that_contradicts_itself_at_one_shape_is_run_again(tmp_path) -> None:
    """The least of both races counts; by the mean of the first alone the exported graph would be faster."""
    left = [([0.05, 0.004], [0.02, 0.006]), ([0.021, 0.004], [0.02, 0.006])]

    class BusyOnce(InProcessWorkers):
        def measure(self, paths: Any, samples: Any, options: Any) -> Measured:
            return Measured([*left.pop(0)])

    report = compile_with(
        onnx.parser.parse_model(TWO_PASSES.replace("256,", "N,")), tmp_path / "m.nnd", backends=("onnxruntime",),
        samples=[SAMPLE, {"x": SAMPLE["x"][:8]}], objective="latency", workers=BusyOnce(),
    )  # fmt: skip
    assert not left
    assert chosen(report) == "onnxruntime"


@pytest.mark.parametrize("second_ms", [0.06, 0.07])
def test_engines_that_are_near_the_best_are_raced_with_the_graph_that_was_exported(tmp_path, second_ms) -> None:
    ms = {"openvino": 0.05, "onnxruntime": second_ms}

    class Told(InProcessWorkers):
        def measure(self, paths: Any, samples: Any, options: Any) -> Measured:
            return Measured([[ms[first_backend(path)]] for path in paths])

    report = compile_with(
        onnx.parser.parse_model(TWO_PASSES), tmp_path / "m.nnd", backends=("openvino", "onnxruntime"),
        samples=[SAMPLE], objective="latency", workers=Told(),
    )  # fmt: skip
    found = {one.name for one in report.candidates}
    assert "openvino, as exported" in found
    assert ("onnxruntime, as exported" in found) == (second_ms < 1.3 * 0.05)


def test_the_best_of_a_first_race_alone_races_against_further_candidates(tmp_path) -> None:
    """The machine takes twice as long in the second race: who did not run again is as far behind as it was."""
    left = [[0.05, 0.06], [0.1, 0.11, 0.115]]

    class Slower(InProcessWorkers):
        def measure(self, paths: Any, samples: Any, options: Any) -> Measured:
            times = left.pop(0)
            return Measured([[times[i]] for i, _ in enumerate(paths)])

    report = compile_with(
        onnx.parser.parse_model(TWO_PASSES), tmp_path / "m.nnd", backends=("openvino", "onnxruntime"),
        samples=[SAMPLE], objective="latency", workers=Slower(),
    )  # fmt: skip
    assert not left
    found = {one.name: one.median_ms for one in report.candidates}
    assert found == {
        "openvino": 0.1, "onnxruntime": 0.12, "openvino, as exported": 0.11, "onnxruntime, as exported": 0.115,
    }  # fmt: skip
    assert chosen(report) == "openvino"


@pytest.mark.parametrize("refused", ["MatMul", "Relu"])
def test_a_library_that_refuses_a_node_is_not_asked_about_the_graph_that_was_exported(
    tmp_path, install, refused
) -> None:
    """It would be asked about each node, which takes long."""
    asked = []

    class Choosy(choosy_backend("hare", 1, *{"Identity", "Add", "MatMul", "Relu"} - {refused})):  # type: ignore[misc]
        def supports(self, model: Any, *rest: Any) -> Any:
            asked.append([node.op_type for node in model.graph])
            return super().supports(model, *rest)

    class Equal(InProcessWorkers):
        def measure(self, paths: Any, samples: Any, options: Any) -> Measured:
            return Measured([[0.01]] * len(paths))

    install(Choosy)
    made = onnx.parser.parse_model(TWO_PASSES.replace("h = Identity(x)", "[first] h = Identity(x)  [of] k = Relu(h)"))
    compile_with(made, tmp_path / "m.nnd", backends=("hare", "onnxruntime"), samples=[SAMPLE], objective="latency",
                 workers=Equal())  # fmt: skip
    assert any("Identity" in one for one in asked) == (refused != "Relu")
