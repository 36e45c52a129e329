# SPDX-License-Identifier: Apache-2.0
"""Sizes that a model leaves open: our own kernels run at all of them, and what they refuse runs on the next variant."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from compile_with import compile_with
from separable_model import needs_native, separable_model

import nndeploy
from nndeploy.bundle.reader import open_bundle
from nndeploy.errors import InputError
from nndeploy.jobs.measuring import Measured
from nndeploy.jobs.workers import InProcessWorkers


class OwnKernelsWin(InProcessWorkers):
    """Says that the candidate with the most of our own kernels is the fastest."""

    def measure(self, paths: Any, samples: Any, options: Any) -> Measured:
        own = [sum(variants[0] == "native" for variants in backends_of(path)) for path in paths]
        return Measured([[1.0 if count == max(own) else 10.0] * len(samples) for count in own])


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
    asked = {"backends": ("onnxruntime", "native"), "objective": "latency", **options}
    compile_with(model, out, **asked, workers=OwnKernelsWin())
    return out


def backends_of(bundle: Path) -> list[list[str]]:
    with open_bundle(bundle) as opened:
        return [[variant.backend for variant in submodel.variants] for submodel in opened.manifest.submodels]


@pytest.mark.parametrize("shape", [(1, 64, 64), (3, 40, 97), (2, 31, 50), (1, 8, 3000), (0, 8, 8)])
def test_every_size_gives_the_numbers_of_the_model(any_image, of_any_image, shape) -> None:
    assert backends_of(of_any_image) == [["native", "onnxruntime"]]
    batch, height, width = shape
    x = np.random.default_rng(0).standard_normal((batch, 32, height, width), np.float32)
    want = onnxruntime.InferenceSession(any_image, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    with nndeploy.load_bundle(of_any_image, nndeploy.LoadOptions(threads=1)) as program:
        for _ in range(2):
            np.testing.assert_allclose(program.run({"x": x})["y"], want[0], rtol=1e-4, atol=1e-4)


def test_what_own_kernels_refuse_at_some_sizes_runs_on_the_next_variant(any_batch) -> None:
    proto = onnx.load(any_batch)
    last, output = proto.graph.node[-1].output[0], proto.graph.output[0]
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0]), "axes"))
    proto.graph.node.append(onnx.helper.make_node("ReduceSum", [last, "axes"], ["z"], keepdims=0))
    output.name = "z"
    del output.type.tensor_type.shape.dim[0]
    onnx.save(proto, any_batch)
    bundle = compiled(any_batch)
    assert backends_of(bundle) == [["native", "onnxruntime"]]
    size = proto.graph.input[0].type.tensor_type.shape.dim
    nothing = np.zeros((0, *(dim.dim_value for dim in list(size)[1:])), np.float32)
    with nndeploy.load_bundle(bundle, nndeploy.LoadOptions(threads=1)) as program:
        assert not program.run({"x": nothing})["z"].any()


def test_without_another_variant_own_kernels_run_at_every_size(any_batch) -> None:
    assert backends_of(compiled(any_batch, keep_fallback=False)) == [["native"]]


def test_one_who_names_a_range_gets_no_more(any_batch) -> None:
    bundle = compiled(any_batch, shapes={"x": "1..4,32,24,24"})
    with nndeploy.load_bundle(bundle) as program, pytest.raises(InputError, match=r"1\.\.4"):
        program.run({"x": np.zeros((5, 32, 24, 24), np.float32)})
