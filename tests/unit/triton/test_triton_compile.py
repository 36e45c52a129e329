# SPDX-License-Identifier: Apache-2.0
"""The compiler: every kernel family becomes cubins for old and new GPUs, the same bytes everywhere, nothing left over.

What the interpreter accepts, the compiler may refuse, so each family is compiled here with all its branches.
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import shape_inference

from nndeploy.errors import BuildRefusedError
from nndeploy.passes import optimise
from nndeploy.plugin.interface import Artifact, BuildOptions
from nndeploy.target.target import Gpu, Target, target_from_toml
from nndeploy.values.types import DimRange

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is not installed")

ROOT = Path(__file__).resolve().parents[3]
ELF = b"\x7fELF"
KERNEL_NAME = re.compile(
    r"nnd_(f32|f16|b8|u?int\d+|float\d+)_"
    r"(convolution|depthwise|elementwise|gather|interpolate|matmul|normalization|pooling|reduction|resize|separable|softmax)"
    r"[a-z0-9_]*__triton_\d+(x\d+)*_[0-9a-f]{8}"
)
MODELS = {
    "convolution": """g ({t}[1,3,9,9] x, {t}[8,3,3,3] w, {t}[8] b, {t}[1,8,5,5] r) => ({t}[1,8,5,5] y) {{
        c = Conv <pads = [1,1,1,1], strides = [2,2]> (x, w, b) s = Add (c, r) y = Relu (s) }}""",
    "pointwise and transposed": """g ({t}[2,16,8,8] x, {t}[8,16,1,1] w, {t}[8,4,2,2] v) => ({t}[2,4,16,16] y) {{
        c = Conv (x, w) s = Sigmoid (c) m = Mul (c, s) y = ConvTranspose <strides = [2,2]> (m, v) }}""",
    "grouped and depthwise": """g ({t}[1,8,6,6] x, {t}[8,4,3,3] w, {t}[8,1,3,3] v) => ({t}[1,8,2,2] y) {{
        c = Conv <group = 2> (x, w) y = Conv <group = 8> (c, v) }}""",
    "separable": """g ({t}[1,20,7,7] x, {t}[20,1,5,5] d, {t}[20] e, {t}[12,20,1,1] p, {t}[12] q, {t}[1,12,1,1] r)
        => ({t}[1,12,7,7] y) {{ a = Conv <group = 20, pads = [2,2,2,2]> (x, d, e) b = HardSwish (a)
        c = Conv (b, p, q) f = Add (c, r) y = Relu (f) }}""",
    "matmul": """g ({t}[2,3,8,16] x, {t}[2,3,16,8] z, {t}[8,4] w, {t}[4] b) => ({t}[2,3,8,4] y) {{
        m = MatMul (x, z) n = MatMul (m, w) s = Add (n, b) y = Gelu (s) }}""",
    "gemm": """g ({t}[5,7] x, {t}[9,7] w, {t}[9] b) => ({t}[5,9] y) {{
        y = Gemm <transB = 1, alpha = 0.5> (x, w, b) }}""",
    "reduction": """g ({t}[2,3,40] x) => ({t}[2,3,1] a, {t}[2,3,1] m, {t}[2,3,1] l) {{
        a = GlobalAveragePool (x) m = GlobalMaxPool (x) l = ReduceL2 <keepdims = 1> (x, axes) }}""",
    "softmax": """g ({t}[2,5,7] x) => ({t}[2,5,7] y, {t}[2,5,7] z) {{
        y = Softmax <axis = 1> (x) z = LogSoftmax <axis = 2> (x) }}""",
    "normalization": """g ({t}[2,6,40] x, {t}[40] s, {t}[40] b, {t}[6] c, {t}[6] d) => ({t}[2,6,40] y) {{
        n = LayerNormalization (x, s, b) y = InstanceNormalization (n, c, d) }}""",
    "pooling": """g ({t}[1,2,9,9] x) => ({t}[1,2,5,5] y, {t}[1,2,4,4] z) {{
        y = MaxPool <kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]> (x)
        z = AveragePool <kernel_shape = [3,3], strides = [2,2], pads = [0,0,1,1], count_include_pad = 1> (x) }}""",
    "movement": """g ({t}[1,4,6,6] x, int64[8] pads, float[4] scales)
        => ({t}[1,4,8,6] y, {t}[6,6,4,1] z, {t}[1,4,12,12] r) {{
        y = Pad <mode = "reflect"> (x, pads) z = Transpose (x) r = Resize <mode = "cubic"> (x, , scales) }}""",
    "chain": """g ({t}[3,4] x, {t}[4] z, {t} lowest) => (bool[3,4] b, {t}[3,4] y) {{
        a = Tanh (x) c = Erf (a) d = Div (c, z) f = Floor (d) h = Round (f) i = Max (h, z) b = Less (i, z)
        j = Where (b, i, x) k = Exp (j) l = Log (k) m = Sqrt (l) n = Softplus (m) o = Clip (n, lowest) p = Sin (o)
        q = Cos (p) s = Reciprocal (q) u = Sign (s) v = Neg (u) y = Elu (v) }}""",
    "integers": """g (int64[3,4] x, int64[4] z, {t}[3,4] v) => (int64[3,4] s, {t}[3,4] y, int64[3] g) {{
        s = Add (x, z) e = Equal (s, z) y = Where (e, v, v2) w = Cast <to = 7> (v) g = Gather <axis = 1> (w, one) }}""",
    "quantised": """g (uint8[1,4,5,5] x, float sx, uint8 zx, int8[6,4,1,1] w, float[6] sw, int8[6] zw, float sy,
        uint8 zy) => (uint8[1,6,5,5] y, {t}[1,4,5,5] d) {{ y = QLinearConv (x, sx, zx, w, sw, zw, sy, zy)
        f = DequantizeLinear (x, sx, zx) d = Cast <to = {c}> (f) }}""",
}
CONSTANTS = {
    "axes": np.array([-1], np.int64), "pads": np.array([0, 0, 1, 0, 0, 0, 1, 0], np.int64),
    "scales": np.array([1, 1, 2, 2], np.float32), "lowest": 0.0, "v2": 1.0, "one": np.array(1, np.int64),
    "sx": np.array(0.5, np.float32), "zx": np.array(3, np.uint8), "sw": np.full(6, 0.25, np.float32),
    "zw": np.zeros(6, np.int8), "sy": np.array(0.1, np.float32), "zy": np.array(1, np.uint8),
}  # fmt: skip
WEIGHTS = ("w", "v", "d", "e", "p", "q", "b", "s", "c", "z")


def model_of(name: str, dtype: str) -> ir.Model:
    body = MODELS[name].format(
        t={"float32": "float", "float16": "float16"}[dtype], c={"float32": 1, "float16": 10}[dtype]
    )
    proto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> {body}')
    for value in list(proto.graph.input):
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        if value.name in CONSTANTS or (value.name in WEIGHTS and name not in ("chain", "integers")):
            proto.graph.input.remove(value)
            kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            data = np.asarray(CONSTANTS.get(value.name, np.ones(shape)), kind).reshape(shape)
            proto.graph.initializer.append(onnx.numpy_helper.from_array(data, value.name))
    known = {tensor.name for tensor in proto.graph.initializer} | {value.name for value in proto.graph.input}
    for constant in {name for node in proto.graph.node for name in node.input} & set(CONSTANTS) - known:
        data = np.asarray(CONSTANTS[constant])
        data = data.astype(dtype) if data.dtype == np.float64 else data
        proto.graph.initializer.append(onnx.numpy_helper.from_array(data, constant))
    return ir.from_proto(shape_inference.infer_shapes(proto, strict_mode=True))


def built(name: str, dtype: str, target: Target) -> Artifact:
    from nndeploy_triton.plugin import Plugin

    plugin, model = Plugin(), model_of(name, dtype)
    refusals = [answer.reason for answer in plugin.supports(model, target, BuildOptions()) if not answer.ok]
    assert refusals == []
    return plugin.build(model, target, BuildOptions(), Path())


MATRICES = ("convolution", "separable", "matmul")
"""Families that multiply matrices, by instructions that GPUs do not share; others differ little from GPU to GPU."""
OLD, NEW = ("float16", "t4", "sm_75"), ("float32", "rtx5090", "sm_120")
MORE = [("float32", "t4", "sm_75"), ("float16", "h200", "sm_90"), ("float32", "jetson-orin", "sm_87")]
CASES = [
    *((name, *gpu) for name in MATRICES for gpu in (OLD, NEW)),
    *((name, *(OLD, NEW)[at % 2]) for at, name in enumerate(MODELS) if name not in MATRICES),
    *(pytest.param(name, *gpu, marks=pytest.mark.slow, id=f"{name} on {gpu[1]}") for name in MATRICES for gpu in MORE),
]


@pytest.mark.parametrize(("name", "dtype", "box", "folder"), CASES)
def test_every_family_compiles_for_gpus_old_or_new(name: str, dtype: str, box: str, folder: str) -> None:
    artifact = built(name, dtype, target_from_toml(ROOT / f"configs/targets/{box}.toml"))
    plan = json.loads(artifact.files[f"{folder}/plan.json"])
    assert artifact.native_code
    assert artifact.deterministic
    assert set(artifact.files) == {"constants.bin", f"{folder}/plan.json"} | {
        f"{folder}/{kernel['file']}" for kernel in plan["kernels"].values()
    }
    for kernel_name, kernel in plan["kernels"].items():
        cubin = artifact.files[f"{folder}/{kernel['file']}"]
        assert KERNEL_NAME.fullmatch(kernel_name), kernel_name
        assert cubin.startswith(ELF)
        assert kernel["symbol"].encode() in cubin
        assert kernel["num_null"] == 2


def test_kernels_for_sizes_in_ranges_are_compiled_once_and_told_every_size() -> None:
    from nndeploy_triton.plugin import Plugin

    text = """g (float[n,3,h,h] x) => (float[n,5] y, float[n,3,i,i] z) { a = Conv <pads = [1,1,1,1]> (x, w) b = Relu (a)
        c = MaxPool <kernel_shape = [2,2], strides = [2,2]> (b) d = GlobalAveragePool (c) e = Flatten (d)
        f = MatMul (e, v) y = Softmax (f) r = Resize <mode = "linear"> (x, , two)
        z = Resize <mode = "nearest"> (r, , two) }"""
    proto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> {text}')
    arrays = {"w": np.ones((8, 3, 3, 3)), "v": np.ones((8, 5)), "two": np.array([1, 1, 2, 2])}
    for name, array in arrays.items():
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array.astype(np.float32), name))
    model = ir.from_proto(shape_inference.infer_shapes(proto))
    ranges = {"n": DimRange(1, 8, 4), "h": DimRange(2, 64, 32)}
    optimise(model, ranges)
    target = target_from_toml(ROOT / "configs/targets/rtx4090.toml")
    artifact = Plugin().build(model, target, BuildOptions(ranges=ranges), Path())
    plan = json.loads(artifact.files["sm_89/plan.json"])
    assert (artifact.metadata["format"], plan["format"]) == (2, 2)
    assert artifact.requires == {"compute_capability": ["8.9"]}
    for kernel, _, sizes in plan["launches"]:
        told = {name for name, _ in plan["kernels"][kernel]["parameters"]}
        of_grid = {name for axis in plan["kernels"][kernel]["grid"] for name, _ in axis}
        assert {name for name, size in sizes.items() if isinstance(size, str)} <= told | of_grid
        assert artifact.files[f"sm_89/{kernel}.cubin"].startswith(ELF)
        assert KERNEL_NAME.fullmatch(kernel), kernel


def test_a_target_with_two_kinds_of_gpu_gets_code_for_both() -> None:
    box = Target("box", "x86_64", gpus=(Gpu("A", "8.9"), Gpu("B", "8.6"), Gpu("C", "8.9")))
    artifact = built("softmax", "float32", box)
    assert {name.split("/")[0] for name in artifact.files} == {"constants.bin", "sm_86", "sm_89"}
    assert artifact.requires == {"compute_capability": ["8.6", "8.9"]}


def test_the_oldest_gpu_multiplies_float32_without_a_mode_that_it_lacks() -> None:
    from nndeploy_triton.gpu import facts_of

    assert facts_of(Gpu("T4", "7.5")).float32_precision == "ieee"
    assert facts_of(Gpu("RTX 4090", "8.9")).float32_precision == "tf32x3"


BUILD_PROGRAM = textwrap.dedent("""
    import hashlib, sys
    from pathlib import Path
    sys.path.insert(0, {folder!r})
    from test_triton_compile import built
    from nndeploy.target.target import target_from_toml
    target = target_from_toml(Path({root!r}) / "configs/targets/rtx4090.toml")
    for model in ("separable", "chain", "matmul"):
        for name, data in sorted(built(model, "float32", target).files.items()):
            print(model, name, len(data), hashlib.sha256(data).hexdigest())
            assert {root!r}.encode() not in data and str(Path.cwd()).encode() not in data
    """)


def build_elsewhere(folder: Path, seed: str) -> tuple[str, list[Path]]:
    """Returns what a build in another process prints, and the files that it left in its home and temporary folder."""
    for name in ("home", "tmp", "cwd"):
        (folder / name).mkdir(parents=True)
    program = BUILD_PROGRAM.format(folder=str(Path(__file__).parent), root=str(ROOT))
    environment = {**os.environ, "HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp"), "PYTHONHASHSEED": seed}
    environment.pop("TRITON_INTERPRET", None)
    environment.pop("TRITON_CACHE_DIR", None)
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, env=environment, cwd=folder / "cwd", capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.slow
def test_two_processes_build_the_same_bytes_and_leave_nothing_behind(tmp_path: Path) -> None:
    first, left = build_elsewhere(tmp_path / "a", "1")
    second, _ = build_elsewhere(tmp_path / "elsewhere" / "b", "2")
    assert first == second
    assert first.count("cubin") >= 4
    assert left == []


def test_what_the_compiler_refuses_is_one_line_that_says_what() -> None:
    from nndeploy_triton.compile_kernels import compile_kernel
    from nndeploy_triton.gpu import facts_of

    gpu = facts_of(Gpu("RTX 4090", "8.9"))
    spec = one_spec()
    constants = tuple((name, (("no such thing", 0),) if name == "PROGRAM" else value) for name, value in spec.constants)
    with pytest.raises(BuildRefusedError) as caught:
        compile_kernel(replace(spec, constants=constants), gpu)
    assert str(caught.value) == f"{spec.name}: no such operator of one operand"


def test_a_kernel_that_needs_more_shared_memory_than_the_gpu_has_is_refused() -> None:
    from nndeploy_triton.compile_kernels import compile_kernel
    from nndeploy_triton.gpu import facts_of

    gpu = replace(facts_of(Gpu("RTX 4090", "8.9")), shared_bytes=16)
    with pytest.raises(BuildRefusedError, match=r"needs [0-9]+ bytes of shared memory, the GPU has 16"):
        compile_kernel(one_spec(), gpu)


def one_spec(name: str = "gemm"):
    """Returns the specification of a model's first kernel."""
    from nndeploy_triton.autotune import tile_of_table
    from nndeploy_triton.build import fused_submodel_of
    from nndeploy_triton.gpu import facts_of
    from nndeploy_triton.kernel_specs import planned
    from nndeploy_triton.plan import Place

    gpu, program = facts_of(Gpu("RTX 4090", "8.9")), fused_submodel_of(model_of(name, "float32"), {})
    request = program.steps[0].request(gpu, tile_of_table(program.steps[0], gpu))
    return planned(request, {view.name: Place("arena", 0) for _, view in request.tensors}).spec


def test_launches_that_differ_only_in_sizes_share_a_kernel_and_a_name() -> None:
    text = """g (float[48,32] x, float[32,32] w, float[32,32] v) => (float[48,32] y) {
        a = MatMul (x, w) y = MatMul (a, v) }"""
    proto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> {text}')
    from nndeploy_triton.plugin import Plugin

    target = Target("box", "x86_64", gpus=(Gpu("RTX 4090", "8.9"),))
    artifact = Plugin().build(ir.from_proto(shape_inference.infer_shapes(proto)), target, BuildOptions(), Path())
    plan = json.loads(artifact.files["sm_89/plan.json"])
    assert (len(plan["kernels"]), len(plan["launches"])) == (1, 2)
