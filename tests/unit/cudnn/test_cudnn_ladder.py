# SPDX-License-Identifier: Apache-2.0
"""A batch in a range on plans for a few sizes: right at every size, or refused; on cuDNN's own plans, read by numpy."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from cudnn_models import cudnn_target, model_from_text
from nndeploy_cudnn.batch_rows import check_alike, places_of_rows
from nndeploy_cudnn.ladder import ladder_of
from nndeploy_cudnn.operations import Pointwise, Reshaped, Transposed, Value
from nndeploy_cudnn.patterns.translation import NotTakenError
from nndeploy_cudnn.plugin import Plugin
from oracle.in_float64 import outputs_in_float64

from nndeploy.cuda import device
from nndeploy.errors import BuildRefusedError, BundleError, DataError
from nndeploy.passes import optimise
from nndeploy.plugin.interface import Artifact, BuildOptions, OpenOptions, Session
from nndeploy.values.types import DimRange

RANGE = {"N": DimRange(1, 5, 1)}
OPTIONS = BuildOptions(ranges=RANGE)
T4 = cudnn_target("t4")

NETWORK = """(float[N,1,8,8] image) => (float[N,10] scores)
    <float[1] half = {0.5}>
    { a = Mul(image,half) p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(a) f = Flatten(p)
      s = Softmax(f) scores = Gemm(s,v) }"""


def network(text: str, **weights: tuple[int, ...]) -> tuple[onnx.ModelProto, ir.Model]:
    """Returns a model with random weights of these shapes, and what the passes make of it."""
    dice, proto = np.random.default_rng(0), ir.to_proto(model_from_text(_with_inputs(text, weights)))
    for name, shape in weights.items():
        proto.graph.initializer.append(
            onnx.numpy_helper.from_array(dice.standard_normal(shape).astype(np.float32) / 2, name)
        )
    kept = [value for value in proto.graph.input if value.name not in weights]
    del proto.graph.input[:]
    proto.graph.input.extend(kept)
    model = ir.from_proto(proto)
    optimise(model, {})
    return proto, model


def _with_inputs(text: str, weights: dict[str, tuple[int, ...]]) -> str:
    begin, end = text.split(") =>", 1)
    more = "".join(f", float[{','.join(map(str, shape))}] {name}" for name, shape in weights.items())
    return f"{begin}{more}) =>{end}"


def built(model: ir.Model) -> Artifact:
    return Plugin().build(model, T4, OPTIONS, Path())


def opened(artifact: Artifact, host_gpu: SimpleNamespace) -> Session:
    host_gpu.library.version = artifact.metadata["cudnn_version"]
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    return Plugin().open(files, artifact.metadata, OpenOptions(device="cuda:0"))


def assert_right_at_every_size(proto: onnx.ModelProto, model: ir.Model, host_gpu: SimpleNamespace) -> None:
    session = opened(built(model), host_gpu)
    for rows in range(1, 6):
        shape = (rows, *(dim.dim_value for dim in proto.graph.input[0].type.tensor_type.shape.dim[1:]))
        given = {proto.graph.input[0].name: np.random.default_rng(rows).standard_normal(shape).astype(np.float32)}
        want, found = outputs_in_float64(proto, given), session.run(given)
        for value in model.graph.outputs:
            np.testing.assert_allclose(found[value.name].numpy(), want[value.name], rtol=1e-4, atol=1e-5)
    session.close()


def test_plans_are_made_for_sizes_that_double() -> None:
    def rungs(low: int, high: int) -> tuple[int, ...] | None:
        found = ladder_of([ir.val("x", shape=["N", 4])], {"N": DimRange(low, high, low)})
        return found and found.rungs

    assert rungs(1, 8) == (1, 2, 4, 8)
    assert rungs(3, 20) == (3, 6, 12, 20)
    assert rungs(0, 4) is None
    assert rungs(1, 1 << 20) is None, "too many"
    assert ladder_of([ir.val("x", shape=["N", "H"])], {"N": DimRange(1, 8, 1), "H": DimRange(1, 8, 1)}) is None
    assert ladder_of([ir.val("x", shape=["N", 4])], {}) is None


@pytest.mark.usefixtures("planners")
def test_an_open_batch_is_right_at_every_size(host_gpu: SimpleNamespace) -> None:
    proto, model = network(NETWORK, v=(16, 10))
    assert all(one.ok for one in Plugin().supports(model, T4, OPTIONS))
    assert_right_at_every_size(proto, model, host_gpu)


@pytest.mark.usefixtures("planners")
def test_rungs_share_weights_in_the_bundle_and_on_the_gpu(host_gpu: SimpleNamespace) -> None:
    artifact = built(network(NETWORK, v=(16, 10))[1])
    assert artifact.metadata["rows"] == [1, 2, 4, 5]
    assert len({data for name, data in artifact.files.items() if name.endswith("safetensors")}) == 1
    session = opened(artifact, host_gpu)
    constants = {id(one._memory["constant"]) for one in session._sessions.values()}  # type: ignore[attr-defined]
    assert len(constants) == 1
    assert len(host_gpu.handles) == 1
    session.close()
    assert host_gpu.driver.live_bytes == 0


@pytest.mark.usefixtures("planners")
def test_inputs_on_the_device_are_filled_up_there_and_left_as_they_are(host_gpu: SimpleNamespace) -> None:
    proto, model = network(NETWORK, v=(16, 10))
    session = opened(built(model), host_gpu)
    values = np.random.default_rng(0).standard_normal((3, 1, 8, 8)).astype(np.float32)
    there = device(0).to_device(values)
    found = session.run({"image": there})["scores"]
    want = outputs_in_float64(proto, {"image": values})["scores"]
    np.testing.assert_allclose(found.numpy(), want, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(there.numpy(), values)
    for rows in (0, 6):
        with pytest.raises(DataError, match="1, 2, 4, 5"):
            session.run({"image": np.zeros((rows, 1, 8, 8), np.float32)})
    session.close()


@pytest.mark.usefixtures("planners")
def test_an_artifact_whose_rungs_do_not_fit_each_other_is_refused(host_gpu: SimpleNamespace) -> None:
    artifact = built(network(NETWORK, v=(16, 10))[1])
    files = {**artifact.files, "rows-2/program.json": artifact.files["rows-4/program.json"]}
    for changed, metadata in (
        (files, artifact.metadata),
        (artifact.files, {**artifact.metadata, "rows": [1, 2, 3]}),
        (artifact.files, {**artifact.metadata, "rows": [2, 1]}),
    ):
        host_gpu.library.version = artifact.metadata["cudnn_version"]
        with pytest.raises(BundleError):
            Plugin().open({n: memoryview(data) for n, data in changed.items()}, metadata, OpenOptions(device="cuda:0"))


MIXING = {
    "mean of the batch": "m = ReduceMean<keepdims=1>(x,zero)  y = Sub(x,m)",
    "softmax over the batch": "y = Softmax<axis=0>(x)",
    "rows times rows": "t = Transpose<perm=[1,0]>(x)  m = MatMul(x,t)  y = MatMul(m,x)",
    "rows joined to rows": "c = Concat<axis=0>(x,x)  r = Relu(c)  y, z = Split<axis=0, num_outputs=2>(r)",
}


@pytest.mark.usefixtures("planners")
@pytest.mark.parametrize("body", MIXING.values(), ids=MIXING)
def test_what_lets_rows_meet_is_refused(body: str) -> None:
    text = f"(float[N,6] x) => (float[N,6] y) <int64[1] zero = {{0}}> {{ {body} }}"
    model = model_from_text(text)
    assert not all(one.ok for one in Plugin().supports(model, T4, OPTIONS))
    with pytest.raises(BuildRefusedError):
        built(model)


def test_rows_are_followed_through_joined_and_parted_axes() -> None:
    x, merged = Value("x", (4, 3, 5), "float32"), Value("m", (12, 5), "float32")
    turned, back = Value("t", (5, 12), "float32"), Value("b", (5, 4, 3), "float32")
    found = places_of_rows(
        [Reshaped(x, merged), Transposed(merged, turned, (1, 0)), Reshaped(turned, back)], {x: 15}, 4
    )
    assert found == {x: 15, merged: 15, turned: 3, back: 3}
    across = Value("a", (2, 30), "float32")
    with pytest.raises(NotTakenError, match="across"):
        places_of_rows([Reshaped(x, across), Pointwise("relu", (across,), across)], {x: 15}, 4)
    other = Value("o", (4, 1, 1), "float32")
    with pytest.raises(NotTakenError, match="'y'"):
        places_of_rows([Pointwise("add", (x, other), Value("y", (4, 3, 5), "float32"))], {x: 15}, 4)


def test_what_depends_on_the_size_of_the_batch_is_seen() -> None:
    def scaled(rows: int) -> list[Pointwise]:
        x, y = (Value(name, (rows, 3), "float32") for name in "xy")
        return [Pointwise("mul", (x, Value("n", (1,), "float32", np.array([1 / rows]))), y)]

    check_alike(scaled(4), scaled(4))
    with pytest.raises(NotTakenError):
        check_alike(scaled(4), scaled(2))


KEEPING = [
    "{y} = Conv<pads=[1,1,1,1]>({x},k)", "{y} = Relu({x})", "{y} = Mul({x},c)", "{y} = Add({x},{x})",
    "{y} = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>({x})", "{y} = Softmax<axis=1>({x})",
    "{y} = Transpose<perm=[0,1,3,2]>({x})", "{y}g = GlobalAveragePool({x})  {y} = Sub({x},{y}g)",
    "{y}r = Reshape({x},rows)  {y}m = MatMul({y}r,w)  {y} = Reshape({y}m,image)",
    "{y}t = Transpose<perm=[1,0,2,3]>({x})  {y}s = Tanh({y}t)  {y} = Transpose<perm=[1,0,2,3]>({y}s)",
    "{y}a, {y}b = Split<axis=1, num_outputs=2>({x})  {y} = Concat<axis=1>({y}b,{y}a)",
    "{y} = InstanceNormalization({x},s,b)", "{y} = LayerNormalization({x},l)",
]  # fmt: skip
MEETING = [
    "{y}m = ReduceMean<keepdims=1>({x},zero)  {y} = Add({x},{y}m)", "{y} = Softmax<axis=0>({x})",
    "{y}t = Transpose<perm=[1,0,2,3]>({x})  {y}r = Reshape({y}t,image)  {y} = Add({x},{y}r)",
]  # fmt: skip
"""Steps of random networks: those that keep the rows of a batch apart, and those that do not."""


def random_networks(count: int) -> Iterator[tuple[int, str]]:
    for seed in range(count):
        dice, steps = np.random.default_rng(seed), [*KEEPING, *KEEPING, *MEETING]
        chosen = [steps[i] for i in dice.integers(0, len(steps), 3)]
        body = "  ".join(step.format(x=f"v{i}", y=f"v{i + 1}") for i, step in enumerate(chosen))
        yield (
            seed,
            f"""(float[N,4,4,4] v0) => (float[N,4,4,4] v3)
            <float[4,1,1] c = {{1.0, -2.0, 0.5, 3.0}}, float[4] s = {{1.5, -0.5, 0.7, 1.0}},
             float[4] b = {{0.1, 0.2, 0.3, 0.4}}, float[4] l = {{1.0, 2.0, 0.5, 0.25}}, int64[1] zero = {{0}},
             int64[2] rows = {{-1,4}}, int64[4] image = {{-1,4,4,4}}>
            {{ {body} }}""",
        )


@pytest.mark.usefixtures("planners")
def test_random_networks_are_right_at_every_size_or_refused(host_gpu: SimpleNamespace) -> None:
    built_ones = 0
    for _seed, text in random_networks(10):
        proto, model = network(text, k=(4, 4, 3, 3), w=(4, 4))
        try:
            assert_right_at_every_size(proto, model, host_gpu)
        except BuildRefusedError:
            continue
        built_ones += 1
    assert 3 <= built_ones < 10
