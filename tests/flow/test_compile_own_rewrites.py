# SPDX-License-Identifier: Apache-2.0
"""A backend rewrites what it takes: it is kept where it is right and no slower, else left out with one line."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from compile_with import compile_with
from faulty_backends import Install, changed_backend, good_backend

import nndeploy
from nndeploy.backend_kit.transforms.merge_products import MergeProducts
from nndeploy.bundle.reader import open_bundle
from nndeploy.graph.edits import GraphEdits
from nndeploy.jobs.measuring import Measured
from nndeploy.jobs.workers import InProcessWorkers
from nndeploy.plugin.interface import Artifact, Transform

TEXT = """<ir_version: 8, opset_import: ["": 18]>
two (float[N,8] x) => (float[N,4] y, float[N,4] z) { y = MatMul(x, a)  q = MatMul(x, b)  z = Relu(q) }"""
WEIGHTS = {name: np.random.default_rng(i).standard_normal((8, 4)).astype(np.float32) for i, name in enumerate("ab")}
SAMPLE = {"x": np.random.default_rng(5).standard_normal((3, 8)).astype(np.float32)}
KEPT = [("transforms of mine on what it takes", 2)]


def model() -> onnx.ModelProto:
    made = onnx.parser.parse_model(TEXT)
    made.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in WEIGHTS.items())
    return made


class _Rewrite:
    """A rewrite that does something to each Relu."""

    name = "planted"

    def __init__(self, change: Callable[[ir.Model, ir.Node], object]) -> None:
        self._change = change

    def __call__(self, model: ir.Model, may_touch: Callable[[ir.Node], bool]) -> int:
        found = [node for node in model.graph if node.op_type == "Relu" and may_touch(node)]
        for node in found:
            self._change(model, node)
        return len(found)


def rewriting(*rewrites: Transform) -> type:
    """Returns a good backend that rewrites what it takes, and notes how many nodes it then built."""

    class Mine(good_backend()):  # type: ignore[misc]
        name, tier = "mine", 1

        def rewrites(self, target: Any) -> Sequence[Transform]:
            return rewrites

        def build(self, submodel: Any, *rest: Any) -> Artifact:
            made = super().build(submodel, *rest)
            return replace(made, metadata={**made.metadata, "built": len(submodel.graph)})

    return Mine


def compiled(path: Path, **options: Any) -> nndeploy.Report:
    return compile_with(model(), path, backends=("mine",), samples=[SAMPLE], keep_fallback=False, **options)


def rewrites_of(report: nndeploy.Report) -> list[tuple[str, int]]:
    return [(one.name, one.count) for one in report.passes if one.name.startswith("transforms of ")]


def num_built(path: Path) -> int:
    with open_bundle(path) as bundle:
        (submodel,) = bundle.manifest.submodels
        return int(submodel.variants[0].metadata["built"])


def assert_right(path: Path) -> None:
    with nndeploy.load_bundle(path) as program:
        found = program.run(SAMPLE)
    np.testing.assert_allclose(found["y"], SAMPLE["x"] @ WEIGHTS["a"], rtol=1e-5)
    np.testing.assert_allclose(found["z"], np.maximum(SAMPLE["x"] @ WEIGHTS["b"], 0), rtol=1e-5)


def test_what_is_right_is_built_and_reported(tmp_path, install: Install) -> None:
    install(rewriting(MergeProducts()))
    report = compiled(tmp_path / "m.nnd")
    assert (rewrites_of(report), report.all_warnings()) == (KEPT, ())
    assert num_built(tmp_path / "m.nnd") == 3  # a product, a Split, the Relu
    assert_right(tmp_path / "m.nnd")


def change_operator(op_type: str, domain: str = "") -> Callable[[ir.Model, ir.Node], None]:
    def change(_: ir.Model, node: ir.Node) -> None:
        node.op_type, node.domain = op_type, domain

    return change


def fail(*_: object) -> None:
    raise KeyError("a planted mistake")


def rename(_: ir.Model, node: ir.Node) -> None:
    node.outputs[0].name = "other"


@pytest.mark.parametrize(("change", "said"), [
    (change_operator("Abs"), "wrong numbers"),
    (change_operator("Thing", "nobody.knows"), "mine builds s0 without its own rewrites"),
    (fail, "a planted mistake"),
    (rename, "renames inputs or outputs"),
])  # fmt: skip
def test_what_is_wrong_is_left_out_with_one_line(change, said: str, tmp_path, install: Install) -> None:
    install(rewriting(MergeProducts(), _Rewrite(change)))
    report = compiled(tmp_path / "m.nnd")
    (line,) = report.dropped
    assert said in line
    assert rewrites_of(report) == []
    assert num_built(tmp_path / "m.nnd") == 3  # two products and the Relu, as they were taken
    assert report.submodels[0].backend == "mine"
    assert_right(tmp_path / "m.nnd")


def test_a_fallback_without_its_rewrites_is_told_too(tmp_path, install: Install) -> None:
    install(changed_backend("first", 0, dict), rewriting(_Rewrite(change_operator("Abs"))))
    how = {"backends": ("first", "mine"), "samples": [SAMPLE], "objective": "priority"}
    report = compile_with(model(), tmp_path / "m.nnd", **how)
    assert report.submodels[0].backend == "first"
    (line,) = report.all_warnings()
    assert line.startswith("mine builds s0 without its own rewrites: wrong numbers")


class Timed(InProcessWorkers):
    """Says how long bundles take, by how many nodes were built."""

    def __init__(self, ms: dict[int, float]) -> None:
        self.ms, self.count = ms, 0

    def measure(self, paths: Any, samples: Any, options: Any) -> Measured:
        self.count += 1
        return Measured([[self.ms[num_built(path)]] * len(samples) for path in paths])


def twice(model: ir.Model, node: ir.Node) -> None:
    node.replace_input_with(0, GraphEdits(model).insert_before(node, "Relu", node.inputs, "inner"))


@pytest.mark.parametrize(("with_ms", "is_kept"), [(2.0, False), (1.02, False), (1.0, True), (0.5, True)])
def test_what_is_slower_is_left_out_and_so_it_is_replayed(
    with_ms: float, is_kept: bool, tmp_path, install: Install
) -> None:
    install(rewriting(_Rewrite(twice)))
    first, again = Timed({4: with_ms, 3: 1.0}), Timed({})
    how = {"objective": "latency", "decisions": tmp_path / "d.json"}
    report = compiled(tmp_path / "a.nnd", **how, workers=first)
    assert {one.name: one.chosen for one in report.candidates} == {
        "mine": is_kept, "mine, without rewrites of mine": not is_kept
    }  # fmt: skip
    assert ("left out" in " ".join(report.dropped), num_built(tmp_path / "a.nnd")) == (not is_kept, 4 if is_kept else 3)
    assert_right(tmp_path / "a.nnd")
    replayed = compiled(tmp_path / "b.nnd", **how, workers=again)
    assert (again.count, replayed.dropped) == (0, report.dropped)
    assert (tmp_path / "a.nnd").read_bytes() == (tmp_path / "b.nnd").read_bytes()
