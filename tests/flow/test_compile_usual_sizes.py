# SPDX-License-Identifier: Apache-2.0
"""Sizes that a model leaves open: our own kernels are built for usual ones, and other sizes run on the next variant."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from separable_model import needs_native, separable_model

import nndeploy
from nndeploy.bundle.reader import open_bundle
from nndeploy.errors import InputError
from nndeploy.jobs.workers import InProcessWorkers


class LastWins(InProcessWorkers):
    """Says that the last of the first candidates is the fastest: own kernels at usual sizes, where that is one."""

    winner = ""

    def measure(self, paths: Any, samples: Any, options: Any) -> list[list[float]]:  # type: ignore[override]
        self.winner = self.winner or paths[-1].name
        return [[1.0 if path.name == self.winner else 10.0] * len(samples) for path in paths]


def opened(path: Path, **names: int) -> Path:
    """Writes a model of images, whose axes called `names` are open."""
    needs_native()
    proto = onnx.load(separable_model(path))
    for value in (*proto.graph.input, *proto.graph.output):
        for name, axis in names.items():
            of_output = value in proto.graph.output and axis > 0
            value.type.tensor_type.shape.dim[axis].dim_param = f"out_{name}" if of_output else name
    onnx.save(proto, path)
    return path


@pytest.fixture(scope="module")
def any_image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a model of images of any number and size."""
    return opened(tmp_path_factory.mktemp("any") / "any.onnx", batch=0, height=2, width=3)


@pytest.fixture(scope="module")
def of_any_image(any_image: Path) -> Path:
    """Returns its bundle."""
    return compiled(any_image)


@pytest.fixture
def any_batch(tmp_path: Path) -> Path:
    """Returns a model of any number of images."""
    return opened(tmp_path / "batch.onnx", batch=0)


def compiled(model: Path, **options: Any) -> Path:
    out = model.with_suffix(".nnd")
    nndeploy.compile_model(
        model, out, nndeploy.CompileOptions(**{"backends": ("onnxruntime", "native"), **options}), workers=LastWins()
    )
    return out


def backends_of(bundle: Path) -> list[list[str]]:
    with open_bundle(bundle) as opened:
        return [[variant.backend for variant in submodel.variants] for submodel in opened.manifest.submodels]


@pytest.mark.parametrize("shape", [(1, 64, 64), (3, 40, 97), (4, 32, 32), (5, 32, 32), (2, 31, 50), (1, 8, 3000)])
def test_every_size_gives_the_numbers_of_the_model(
    any_image: Path, of_any_image: Path, shape: tuple[int, int, int]
) -> None:
    assert backends_of(of_any_image) == [["native", "onnxruntime"]]
    batch, height, width = shape
    x = np.random.default_rng(0).standard_normal((batch, 32, height, width), np.float32)
    want = onnxruntime.InferenceSession(any_image, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    with nndeploy.load_bundle(of_any_image, nndeploy.LoadOptions(threads=1)) as program:
        for _ in range(2):
            np.testing.assert_allclose(program.run({"x": x})["y"], want[0], rtol=1e-4, atol=1e-4)


def test_what_a_library_takes_of_such_a_chain_is_not_held_to_usual_sizes(
    any_batch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nndeploy.compiler.placement.objective.PRUNED_OWN_KERNELS", 100.0)
    monkeypatch.setattr("nndeploy.compiler.placement.objective.SMALL_SECONDS", 0.0)
    proto = onnx.load(any_batch)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array(1), "axis"))
    proto.graph.node.append(onnx.helper.make_node("CumSum", [proto.graph.node[-1].output[0], "axis"], ["z"]))
    proto.graph.output[0].name = "z"
    for value in (*proto.graph.input, *proto.graph.output):
        for axis in (2, 3):
            value.type.tensor_type.shape.dim[axis].dim_value = 64
    onnx.save(proto, any_batch)
    bundle = compiled(any_batch, backends=("openvino", "native"))
    assert [variants[0] for variants in backends_of(bundle)] == ["native", "openvino"]
    x = np.random.default_rng(0).standard_normal((33, 32, 64, 64), np.float32)
    want = onnxruntime.InferenceSession(any_batch, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    with nndeploy.load_bundle(bundle, nndeploy.LoadOptions(threads=1)) as program:
        np.testing.assert_allclose(program.run({"x": x})["z"], want[0], rtol=1e-3, atol=1e-3)


def test_without_a_variant_for_other_sizes_none_are_assumed(any_batch: Path) -> None:
    assert backends_of(compiled(any_batch, keep_fallback=False)) == [["onnxruntime"]]


def test_what_was_decided_is_built_again(any_batch: Path, tmp_path: Path) -> None:
    decisions = tmp_path / "decisions.json"
    first = compiled(any_batch, decisions=decisions).read_bytes()
    assert compiled(any_batch, decisions=decisions).read_bytes() == first


def test_one_who_names_a_range_gets_no_more(any_batch: Path) -> None:
    bundle = compiled(any_batch, shapes={"x": "1..4,32,24,24"})
    with nndeploy.load_bundle(bundle) as program, pytest.raises(InputError, match=r"1\.\.4"):
        program.run({"x": np.zeros((5, 32, 24, 24), np.float32)})
