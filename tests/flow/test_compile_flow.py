# SPDX-License-Identifier: Apache-2.0
"""The compile flow from Python: splitting, checking, falling back, gates, and what is left behind when it fails."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from compile_with import compile_with
from faulty_backends import changed_backend, choosy_backend, late, off_by_one, refusing_backend

import nndeploy
from nndeploy.compiler.flow import compile_model
from nndeploy.compiler.stages import stages_of
from nndeploy.errors import CheckError, InputError, ModelError, UsageError
from nndeploy.target.known_targets import target_of
from nndeploy.target.target import host_target

NETWORK = """<ir_version: 8, opset_import: ["": 18]>
network (float[N,4] x) => (float[N,4] y, float[N,4] z) {
    [enter] a = Relu(x)
    [middle] b = Sigmoid(a)
    [leave] y = Mul(b, a)
    [aside] z = Tanh(x)
}"""
SAMPLE = {"x": np.linspace(-2, 2, 8, dtype=np.float32).reshape(2, 4)}


def model(text: str = NETWORK) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


def right(sample: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    a = np.maximum(sample["x"], 0)
    return {"y": a / (1 + np.exp(-a)), "z": np.tanh(sample["x"])}


def assert_right(path: Path) -> None:
    with nndeploy.load_bundle(path) as program:
        got = program.run(SAMPLE)
    for name, want in right(SAMPLE).items():
        np.testing.assert_allclose(got[name], want, rtol=1e-5, atol=1e-6)


def test_a_refused_node_splits_the_model_and_the_reason_is_kept(tmp_path, install) -> None:
    install(choosy_backend("choosy", 1, "Relu", "Mul", "Tanh"))
    pins = [(name, "choosy") for name in ("enter", "leave", "aside")]  # else so little would be merged
    pins.append(("middle", "onnxruntime"))
    report = compile_with(model(), tmp_path / "m.nnd", pins=pins)
    assert {node.name: node.backend for node in report.nodes} == {
        "enter": "choosy", "middle": "onnxruntime", "leave": "choosy", "aside": "choosy",
    }  # fmt: skip
    middle = next(node for node in report.nodes if node.name == "middle")
    assert middle.refusals["choosy"] == "choosy has no Sigmoid"
    assert len(report.submodels) > 1
    assert_right(tmp_path / "m.nnd")


@pytest.mark.parametrize("given", [
    {}, {"keep_fallback": False, "targets": (target_of("raspberry-pi-5"),)}, {"dry_run": True}
], ids=["usual", "for a box", "dry"])  # fmt: skip
def test_a_compile_announces_the_stages_that_its_options_mean(tmp_path, given) -> None:
    options = nndeploy.CompileOptions(objective="priority", backends=("native", "onnxruntime"), **given)
    announced: list[str] = []
    compile_model(model(), tmp_path / "m.nnd", options, events=lambda stage, detail: detail or announced.append(stage))
    assert tuple(announced) == stages_of(options, has_gpu=bool(host_target().gpus))


def test_a_backend_with_wrong_numbers_is_dropped_and_the_next_tier_takes_over(tmp_path, install) -> None:
    install(changed_backend("liar", 0, off_by_one))
    report = compile_with(model(), tmp_path / "m.nnd", objective="priority")
    assert "liar" not in {submodel.backend for submodel in report.submodels}
    assert any("liar lost 4 nodes: wrong numbers" in line for line in report.dropped)
    assert all("wrong numbers" in node.refusals["liar"] for node in report.nodes)
    assert_right(tmp_path / "m.nnd")


def test_a_model_that_only_a_liar_takes_is_refused_and_nothing_is_written(tmp_path, install) -> None:
    install(changed_backend("liar", 0, off_by_one))
    out = tmp_path / "m.nnd"
    out.write_bytes(b"what was there before")
    with pytest.raises(ModelError, match=r"liar: wrong numbers: output '.' of sample 0 differs"):
        compile_with(model(), out, backends=("liar",))
    assert out.read_bytes() == b"what was there before"
    assert [path.name for path in tmp_path.iterdir()] == ["m.nnd"]


def test_what_fails_at_sizes_that_nobody_gave_says_how_to_give_them(tmp_path, install) -> None:
    """The sizes may be what is wrong: a recording that is too short, an image that is too small."""
    install(refusing_backend("moody", 0, "reflects more than there is"))
    said = "it was tried with x[1,4]: where the model needs other sizes, say them with --shape, or give --samples"
    with pytest.raises(ModelError) as caught:
        compile_with(model(), tmp_path / "m.nnd", backends=("moody",))
    assert said in caught.value.hint
    assert said in compile_with(model(), tmp_path / "m.nnd", backends=("moody", "onnxruntime")).dropped[-1]
    fixed = compile_with(model(), tmp_path / "m.nnd", backends=("moody", "onnxruntime"), shapes={"x": (2, 4)})
    given = compile_with(model(), tmp_path / "m.nnd", backends=("moody", "onnxruntime"), samples=[SAMPLE])
    assert not any("it was tried with" in line for report in (fixed, given) for line in report.dropped)


def test_a_backend_that_is_measured_to_be_faster_is_taken_unless_the_order_of_tiers_is_wanted(
    tmp_path, install
) -> None:
    install(changed_backend("tortoise", 0, late))
    both = ("tortoise", "onnxruntime")
    by_priority = compile_with(model(), tmp_path / "p.nnd", backends=both, objective="priority")
    assert by_priority.submodels[0].backend == "tortoise"
    report = compile_with(model(), tmp_path / "l.nnd", backends=both, objective="latency", samples=[SAMPLE])
    assert report.submodels[0].backend == "onnxruntime"
    names = {c.name: c.chosen for c in report.candidates}
    assert names["tortoise"] is False
    assert sum(names.values()) == 1
    assert_right(tmp_path / "l.nnd")


def test_each_submodel_has_a_variant_of_the_next_backend_unless_it_is_not_wanted(tmp_path) -> None:
    compile_with(model(), tmp_path / "with.nnd", backends=("onnxruntime", "reference"))
    compile_with(model(), tmp_path / "without.nnd", backends=("onnxruntime", "reference"), keep_fallback=False)
    with nndeploy.load_bundle(tmp_path / "with.nnd") as program:
        variants = program.manifest.submodels[0].variants
    assert [variant.backend for variant in variants] == ["onnxruntime", "reference"]
    with nndeploy.load_bundle(tmp_path / "without.nnd") as program:
        assert [variant.backend for variant in program.manifest.submodels[0].variants] == ["onnxruntime"]


def test_a_bundle_larger_than_was_allowed_is_not_written(tmp_path) -> None:
    small = nndeploy.CompileOptions(backends=("onnxruntime",), max_size=100)
    with pytest.raises(CheckError, match=r"the bundle has [\d,]+ bytes, the limit is 100") as caught:
        nndeploy.compile_model(model(), tmp_path / "m.nnd", small)
    assert caught.value.report is not None
    assert list(tmp_path.iterdir()) == []
    report = nndeploy.compile_model(model(), tmp_path / "m.nnd", replace(small, max_size=1 << 20))
    assert report.bundle_bytes <= 1 << 20
    assert 0 < sum(row.size_bytes for row in report.contents) < report.bundle_bytes
    assert {"samples", "plans"} <= {row.what for row in report.contents}


def test_gates_fail_the_compile_and_leave_no_bundle(tmp_path) -> None:
    out = tmp_path / "m.nnd"
    with pytest.raises(CheckError, match=r"reference takes 0\.0% of the compute, 50\.0% were required"):
        compile_with(model(), out, backends=("onnxruntime", "reference"), require={"reference": 0.5})
    with pytest.raises(CheckError, match=r"fallback backends take 100\.0% of the compute, the limit is 5\.0%"):
        compile_with(model(), out, backends=("onnxruntime",), max_fallback=0.05)
    with pytest.raises(UsageError, match="did you mean 'onnxruntime'"):
        compile_with(model(), out, backends=("onnxruntime",), require={"onxruntime": 0.5})
    assert not out.exists()
    compile_with(model(), out, backends=("onnxruntime",), require={"onnxruntime": 1.0}, max_fallback=1.0)
    assert_right(out)


@pytest.mark.parametrize(("change", "message"), [
    ({"backends": ["onxruntime"]}, "did you mean 'onnxruntime'"),
    ({"backends": ["onnxruntime", "onnxruntime"]}, "named twice"),
    ({"objective": "speed"}, "unknown objective 'speed'"), ({"threads": 0}, "at least 1"),
    ({"rtol": -1.0}, "rtol must be"), ({"max_fallback": 5.0}, "between 0% and 100%"),
    ({"pins": [("nothing*", "onnxruntime")]}, "matches no node"), ({"shapes": {"q": "1,4"}}, "no input 'q'"),
])  # fmt: skip
def test_options_that_make_no_sense_are_refused(change, message, tmp_path) -> None:
    with pytest.raises(UsageError, match=message):
        compile_with(model(), tmp_path / "m.nnd", **{"backends": ("onnxruntime",), **change})
    assert not (tmp_path / "m.nnd").exists()


def test_samples_with_wrong_names_are_refused(tmp_path) -> None:
    with pytest.raises(InputError, match=r"sample 0: .*'w'"):
        compile_with(model(), tmp_path / "m.nnd", samples=[{"w": SAMPLE["x"]}])
    with pytest.raises(InputError, match="sample 0: input 'x' is missing"):
        compile_with(model(), tmp_path / "m.nnd", samples=[{}])


def test_a_sample_the_model_cannot_run_is_an_error_that_says_so(tmp_path) -> None:
    with pytest.raises(ModelError, match="does not run on the given samples"):
        compile_with(
            model(
                '<ir_version: 8, opset_import: ["": 18]> g (float[a] x, float[b] y) => (float[c] z) { z = Add(x, y) }'
            ),
            tmp_path / "m.nnd",
            samples=[{"x": np.ones(3, np.float32), "y": np.ones(5, np.float32)}],
        )


def test_outputs_that_need_no_submodel_are_there_too(tmp_path) -> None:
    text = """<ir_version: 8, opset_import: ["": 18]>
    g (float[2] x) => (float[2] x, float[2] c, float[2] y)
    <float[2] c = {1.0, 2.0}> { y = Add(x, c) }"""
    compile_with(model(text), tmp_path / "m.nnd", backends=("onnxruntime",))
    with nndeploy.load_bundle(tmp_path / "m.nnd") as program:
        got = program.run({"x": np.array([3, 4], np.float32)})
    assert {name: value.tolist() for name, value in got.items()} == {"x": [3, 4], "c": [1, 2], "y": [4, 6]}


def test_random_operators_are_compared_by_type_and_shape_only(tmp_path) -> None:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => (float[3] y) { y = RandomNormalLike(x) }'
    report = compile_with(model(text), tmp_path / "m.nnd", backends=("onnxruntime",))
    assert all("random by definition" in check.note for check in report.checks if check.scope == "whole")


def test_a_model_no_generated_input_fits_is_compiled_where_that_is_allowed(tmp_path) -> None:
    text = """<ir_version: 8, opset_import: ["": 18]>
    g (float[2] x) => (float[2] y) <float[2] rows = {3.0, 4.0}, int64 first = {1000}>
    { i = Cast<to=7>(x) j = Sub(i, first) y = Gather(rows, j) }"""
    with pytest.raises(CheckError):
        compile_with(model(text), tmp_path / "m.nnd", backends=("onnxruntime",))
    assert not (tmp_path / "m.nnd").exists()
    report = compile_with(model(text), tmp_path / "m.nnd", backends=("onnxruntime",), allow_uncompared=True)
    assert any("outputs were not compared" in line and "--samples" in line for line in report.warnings)
    with nndeploy.load_bundle(tmp_path / "m.nnd") as program:
        assert program.run({"x": np.array([1001, 1000], np.float32)})["y"].tolist() == [4, 3]


def test_passes_that_change_the_numbers_are_dropped(tmp_path, monkeypatch) -> None:
    import nndeploy.compiler.checked_passes
    from nndeploy.bundle.report import PassReport

    def vandalise(graph_model: object, ranges: object, passes: object) -> tuple[PassReport, ...]:
        for node in graph_model.graph:
            if node.op_type == "Relu":
                node.op_type = "Neg"
        return (PassReport("vandalise", 1),)

    monkeypatch.setattr(nndeploy.compiler.checked_passes, "optimise", vandalise)
    report = compile_with(model(), tmp_path / "m.nnd", backends=("onnxruntime",))
    assert any("the optimisation was dropped" in line for line in report.warnings)
    assert_right(tmp_path / "m.nnd")
