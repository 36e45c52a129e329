# SPDX-License-Identifier: Apache-2.0
"""What the mutants of OpenVINO's members are made of: the IR of small models, and how each is called.

Few are texts here, one for each family of layers; many are ONNX's own node tests, as far as OpenVINO takes them.
"""

import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
from nndeploy_openvino.plugin import Plugin

from nndeploy.errors import BuildRefusedError
from nndeploy.plugin.interface import BuildOptions
from nndeploy.target.target import Target, host_target
from nndeploy.values.types import Dim, TensorType, numpy_dtype

MAX_BYTES = 2**18
OPEN_SIZE = 3
"""What stands for a size that is open."""

WHOLE_NUMBERS = (-1, -2, -3, -100, 100, 7, 2**16, 2**31 - 1, -(2**31))
NUMBERS = (float("nan"), float("inf"), -float("inf"), 3e9, -3e9, 1e38, 1e-40, -100.0, 0.5)
"""What numbers of a call may be that is not usual."""

TEXTS = {
    "convolutions": (
        """g (float[1,4,9,9] x) => (float[1,8,4,4] y, float[1,8,9,9] z)  { a = Conv<pads=[1,1,1,1]>(x, w) b =
        Conv<pads=[1,1,1,1], group=8>(a, v) c = Relu(b)
        y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(c) p = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1]>(c)
        z = Sigmoid(p) }""", {"w": (8, 4, 3, 3), "v": (8, 1, 3, 3), "u": (8, 2, 2, 2)},
    ),
    "deconvolution": (
        """g (float[N,4,5,5] x) => (float[N,2,10,10] y) { y = ConvTranspose<strides=[2,2]>(x, w) }""",
        {"w": (4, 2, 2, 2)},
    ),
    "attention": (
        """g (float[N,6,8] x) => (float[N,6,8] y) { q = MatMul(x, w) k = Add(q, b) t = Transpose<perm=[0,2,1]>(k) a =
        MatMul(q, t) m = Softmax(a)
        o = MatMul(m, x) l = LayerNormalization(o, s, b) y = Gelu(l) }""", {"w": (8, 8), "b": (8,), "s": (8,)},
    ),
    "sizes": (
        """g (float[N,4,6] x) => (float[N,24] y, float[A,B] z) <int64[2] s = {0, -1}, int64[1] m = {-1}, int64[1] f =
        {0}> { y = Reshape(x, s) h = Shape(x) n = Gather<axis=0>(h, f) t = Concat<axis=0>(n, m)
        z = Reshape(x, t) }""", {},
    ),
    "look-ups": (
        """g (int64[N] i, float[7,4] r) => (float[N,4] y, float[7,4] z, float[2,4] e)
        <int64[3,2] k = {0, 1, 6, 3, 2, 2}, int64[2,4] j = {0,1,2,3,4,5,6,0}>
        { y = Gather<axis=0>(w, i) z = ScatterND(r, k, u) e = GatherElements<axis=0>(r, j) }""",
        {"w": (5, 4), "u": (3,)},
    ),
    "cuts": (
        """g (float[5,6] x) => (float[2,6] y, float[9,6] z, float[5,2] a, float[5,4] b, float[10,6] t, float[5,6] c)
        <int64[1] one = {1}, int64[1] three = {3}, int64[1] zero = {0}, int64[4] p = {2,0,2,0}, int64[2] d = {2,4},
        int64[2] r = {2,1}> { y = Slice(x, one, three, zero) z = Pad(x, p) a, b = Split<axis=1>(x, d) t = Tile(x, r)
        c = CumSum(x, one) }""", {},
    ),
    "order": (
        """g (float[3,8] x) => (float[3,2] y, int64[3,2] i, float[3,8] l, float[3,1] m, int64[3] a) <int64[1] k = {2},
        int64[1] one = {1}> { y, i = TopK(x, k) l = LogSoftmax(x) m = ReduceMax(x, one) a = ArgMax<axis=1,
        keepdims=0>(x) }""", {},
    ),
    "resize": ("""g (float[1,2,4,4] x, float[1,3,3,2] g) => (float[1,2,8,8] y, float[1,2,3,3] z, float[1,8,2,2] d)
        <float[4] s = {1,1,2,2}> { y = Resize<mode="linear">(x, , s) z = GridSample(x, g)
        d = SpaceToDepth<blocksize=2>(x) }""", {}),
    "recurrent": ("""g (float[5,N,4] x) => (float[5,1,N,3] y, float[5,1,N,3] z)  { y = LSTM<hidden_size=3>(x, w, r) z =
        GRU<hidden_size=3>(x, v, u) }""", {"w": (1, 12, 4), "r": (1, 12, 3), "v": (1, 9, 4), "u": (1, 9, 3)}),
    "quantised": (
        """g (float[1,4,6,6] x) => (float[1,4,6,6] y) <float s = {0.1}, uint8 z = {128}, float t = {0.02}, int8 n =
        {0}> { q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z)
        v = DequantizeLinear(w, t, n) y = Conv<pads=[1,1,1,1]>(d, v) }""", {"w": (4, 4, 3, 3)},
    ),
    "loop": ("""g (float[2] x) => (float[2] y, float[3,2] all) <int64 n = {3}> {
        y, all = Loop (n, , x) <body = b (int64 i, bool c, float[2] a) => (bool d, float[2] e, float[2] f)
        { d = Identity(c) e = Neg(a) f = Exp(a) }> }""", {}),
    "if": ("""g (bool c, float[2,3] x) => (float[2,3] y) { y = If (c) <then_branch = t () => (float[2,3] p) { p = Neg(x)
        },
        else_branch = e () => (float[2,3] q) { q = Tanh(x) }> }""", {}),
    "scan": ("""g (float[3] h, float[4,3] x) => (float[3] y, float[4,3] z) { y, z = Scan<num_scan_inputs=1,
        body = b (float[3] a, float[3] c) => (float[3] d, float[3] e) { d = Add(a, c) e = Mul(d, c) }>(h, x) }""", {}),
    "choices": (
        """g (float[4,5] x, bool[4,5] c, int64[4] i) => (float[4,5] y, int64[2,K] k, float[4,6] o) <float z = {0},
        int64 d = {6}, float[2] v = {0, 1}>
        { a = Where(c, x, z) y = Clip(a, z) k = NonZero(x) o = OneHot(i, d, v) }""", {},
    ),
    "boxes": ("""g (float[1,9,4] b, float[1,2,9] s) => (int64[K,3] y) <int64 m = {4}, float t = {0.5}>
        { y = NonMaxSuppression(b, s, m, t, t) }""", {}),
    "instances": ("g (float[1,2,8,8] x) => (float[1,2,8,8] n) { n = InstanceNormalization(x, w, w) }", {"w": (2,)}),
}  # fmt: skip
"""ONNX text, and the shapes of constants that it has besides."""


@dataclass(frozen=True, slots=True)
class Seed:
    """The members of one submodel for OpenVINO, what its manifest says of it, and the sizes of its inputs.

    A `call` other than 0 has numbers that are not usual, drawn by it.
    """

    name: str
    graph: bytes
    weights: bytes
    metadata: dict[str, Any]
    inputs: dict[str, TensorType]
    outputs: dict[str, TensorType]
    call: int = 0

    def values(self) -> dict[str, np.ndarray[Any, Any]]:
        numbers = np.random.default_rng(self.call)
        share = numbers.choice((0.1, 0.5, 1.0)) if self.call else 0.0
        values = {}
        for name, kind in self.inputs.items():
            dtype = numpy_dtype(kind.dtype)
            shape = [size if isinstance(size, int) else OPEN_SIZE for size in kind.shape or ()]
            odd = numbers.choice(WHOLE_NUMBERS if dtype.kind in "iu" else NUMBERS, shape)
            mixed = np.where(numbers.random(shape) < share, odd, 2 * numbers.random(shape))
            with np.errstate(all="ignore"):
                values[name] = mixed.astype(np.int64 if dtype.kind in "iu" else np.float64).astype(dtype)
        return values


def from_onnx(name: str, proto: onnx.ModelProto, target: Target) -> Seed | None:
    """Returns the members that the backend makes of a model; None where it refuses it or they are large."""
    model = ir.from_proto(onnx.shape_inference.infer_shapes(proto, data_prop=True))
    inputs, outputs = (
        {value.name or "": value for value in side} for side in (model.graph.inputs, model.graph.outputs)
    )
    if any(value.dtype is None or value.shape is None for value in (*inputs.values(), *outputs.values())):
        return None
    with tempfile.TemporaryDirectory() as folder:
        try:
            artifact = Plugin().build(model, target, BuildOptions(), Path(folder))
        except BuildRefusedError:
            return None
    graph, weights = bytes(artifact.files["model.xml"]), bytes(artifact.files["model.bin"])
    if len(graph) + len(weights) > MAX_BYTES:
        return None
    types = [{name: _type_of(value) for name, value in side.items()} for side in (inputs, outputs)]
    return Seed(name, graph, weights, dict(artifact.metadata), *types)


def _type_of(value: ir.Value) -> TensorType:
    assert value.dtype is not None
    assert value.shape is not None
    dims: list[Dim] = [dim if isinstance(dim, int) else dim.value for dim in value.shape]
    return TensorType(value.dtype.numpy().name, tuple(dims))


def family_seeds() -> list[Seed]:
    numbers, seeds = np.random.default_rng(1), []
    for name, (text, shapes) in TEXTS.items():
        model = onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 20]> ' + text)
        for constant, shape in shapes.items():
            array = numbers.standard_normal(shape).astype(np.float32)
            array = (array * 40).astype(np.int8) if name == "quantised" else array
            model.graph.initializer.append(onnx.numpy_helper.from_array(array, constant))
        seed = from_onnx(name, model, _portable())
        assert seed is not None, name
        seeds.append(seed)
    return seeds


def suite_seeds() -> Iterator[Seed]:
    """Yields a seed of each of ONNX's node tests that the backend takes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        cases = [case for case in collect_testcases(None) if case.model is not None]
        for case in cases:
            try:
                seed = from_onnx(case.name, case.model, _portable())
            except Exception:  # noqa: S112 - a model that no compile would have let through to here
                continue
            if seed is not None:
                yield seed


def _portable() -> Target:
    """Returns a target for which no compiled model is made beside the IR."""
    return Target("box", host_target().arch)


def write_seeds(seeds: list[Seed], path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for seed in seeds:
            types = [
                {name: (kind.dtype, kind.shape) for name, kind in side.items()} for side in (seed.inputs, seed.outputs)
            ]
            line = (seed.name, seed.graph.decode("latin-1"), seed.weights.hex(), seed.metadata, *types)
            file.write(json.dumps(line) + "\n")


def read_seeds(path: Path) -> list[Seed]:
    """Returns what `write_seeds` wrote."""
    seeds = []
    for line in path.read_text(encoding="utf-8").splitlines():
        name, graph, weights, metadata, *sides = json.loads(line)
        types = [{name: TensorType(dtype, tuple(shape)) for name, (dtype, shape) in side.items()} for side in sides]
        seeds.append(Seed(name, graph.encode("latin-1"), bytes.fromhex(weights), metadata, *types))
    return seeds


def make_seeds(path: Path, *, is_small: bool) -> None:
    """Writes the seeds in a child, whose threads of the library are nobody else's; a file that is there is kept."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, __file__, str(path), "--small" if is_small else "--all"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    found = family_seeds() + ([] if sys.argv[2] == "--small" else list(suite_seeds()))
    write_seeds(found, Path(sys.argv[1]))
