# SPDX-License-Identifier: Apache-2.0
"""Small bundles for the tests of the run half, put together without a compile."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx.numpy_helper
import onnx.parser
import onnx_ir as ir

from nndeploy.bundle.manifest import Golden, ImageInput, Manifest, NamedType, Submodel, Tolerance, Variant
from nndeploy.bundle.reader import open_bundle
from nndeploy.bundle.report import CheckReport, NodeReport, Report, SubmodelReport, report_for_bundle
from nndeploy.bundle.values import encode_values
from nndeploy.bundle.writer import write_bundle
from nndeploy.frontend.load import load_model
from nndeploy.plugin.interface import BuildOptions
from nndeploy.plugin.registry import backend
from nndeploy.target.target import host_target
from nndeploy.trust.made_here import note_made_here
from nndeploy.values.types import DimRange, TensorType

DOUBLE = """<ir_version: 8, opset_import: ["": 17]>
g (float[N,3] image) => (float[N,3] y) { two = Constant<value = float {2}>() y = Mul(image, two) }"""

FOURS = DOUBLE.replace("[N,", "[4,")

BRANCHES = {
    "s0": """<ir_version: 8, opset_import: ["": 17]>
g (float[N,3] image) => (float[N,3] l) { l = Neg(image) }""",
    "s1": """<ir_version: 8, opset_import: ["": 17]>
g (float[N,3] image) => (float[N,3] r) { r = Abs(image) }""",
    "s2": """<ir_version: 8, opset_import: ["": 17]>
g (float[N,3] l, float[N,3] r) => (float[N,3] y) { y = Add(l, r) }""",
}

PICTURE = """<ir_version: 8, opset_import: ["": 17]>
g (float[N,1,2,3] image) => (float[N,2] y) {
  axes = Constant<value = int64[2] {2, 3}>() mean = ReduceMean<keepdims = 0, axes = [2, 3]>(image)
  minus = Neg(mean) y = Concat<axis = 1>(minus, mean) }"""

F32 = TensorType("float32", ("N", 3))


def write_double(
    path: Path,
    *,
    golden: float = 2.0,
    others: tuple[Variant, ...] = (),
    members: Mapping[str, bytes] = {},
    **fields: object,
) -> Path:
    """Writes a bundle that doubles `image` (float32[N,3], N in 1..8), with one golden; `golden` is its factor."""
    sample = np.arange(6, dtype=np.float32).reshape(2, 3)
    goldens = {
        "goldens/0/inputs.values": encode_values({"image": sample}),
        "goldens/0/outputs.values": encode_values({"y": sample * np.float32(golden)}),
    }
    return _write(
        path, {"s0": DOUBLE}, {"image": F32, "y": F32}, others=others, extra={**goldens, **members},
        ranges={"N": DimRange(1, 8, 2)},
        goldens=(Golden("goldens/0/inputs.values", "goldens/0/outputs.values", "", "sample"),),
        tolerances={"float32": Tolerance(1e-4, 1e-5)}, **fields,
    )  # fmt: skip


def write_branches(path: Path) -> Path:
    """Writes a bundle of three submodels, y = |image| - image, of which two do not depend on each other."""
    return _write(path, BRANCHES, dict.fromkeys(("image", "l", "r", "y"), F32))


def write_fours(path: Path) -> Path:
    """Writes a bundle that doubles `image`, always four rows."""
    return _write(path, {"s0": FOURS}, dict.fromkeys(("image", "y"), TensorType("float32", (4, 3))))


def write_picture(path: Path) -> Path:
    """Writes a bundle that tells dark from bright grey images of 2 x 3 pixels."""
    types = {"image": TensorType("float32", ("N", 1, 2, 3)), "y": TensorType("float32", ("N", 2))}
    how = ImageInput("image", 2, 3, "L", "NCHW", (127.5,), (127.5,), ("dark", "bright"))
    return _write(path, {"s0": PICTURE}, types, image_input=how)


def write_model(path: Path, source: Path) -> Path:
    """Writes a bundle of a model as it is, for ONNX Runtime."""
    loaded = load_model(source)
    inputs, outputs = (tuple(NamedType(one.name, one.type) for one in side) for side in (loaded.inputs, loaded.outputs))
    member = "submodels/s0/v0-onnxruntime/model.onnx"
    variant = Variant("v0-onnxruntime", "onnxruntime", "host", {"model.onnx": member})
    names = (tuple(one.name for one in side) for side in (inputs, outputs))
    values = {one.name: one.type for one in (*inputs, *outputs)}
    manifest = Manifest(
        source.stem, "0" * 64, inputs, outputs, (Submodel("s0", *names, (variant,)),), values,
        tolerances={"float32": Tolerance(1e-3, 1e-4)},
    )  # fmt: skip
    write_bundle(path, manifest, {member: source.read_bytes()}, {"model": source.stem})
    with open_bundle(path) as bundle:
        note_made_here(bundle)  # as a compile does
    return path


def write_wide(path: Path, size: int) -> Path:
    """Writes a bundle for our own kernels: y[1,size] = image[1,size] by a matrix of size x size ones."""
    text = f"""<ir_version: 8, opset_import: ["": 17]>
g (float[1,{size}] image) => (float[1,{size}] y) {{ y = MatMul(image, w) }}"""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((size, size), np.float32), "w"))
    plugin = backend("native")
    artifact = plugin.build(ir.from_proto(model), host_target(), BuildOptions(), path.parent)
    members = {f"submodels/s0/v0-native/{name}": data for name, data in artifact.files.items()}
    files = {name: f"submodels/s0/v0-native/{name}" for name in artifact.files}
    variant = Variant("v0-native", "native", "any", files, metadata=artifact.metadata, requires=artifact.requires)
    kind = TensorType("float32", (1, size))
    borders = (NamedType("image", kind),), (NamedType("y", kind),)
    submodel = Submodel("s0", ("image",), ("y",), (variant,))
    manifest = Manifest("wide", "0" * 64, *borders, (submodel,), {"image": kind, "y": kind})
    write_bundle(path, manifest, members, {"model": "wide"})
    return path


def _write(
    path: Path,
    texts: Mapping[str, str],
    values: Mapping[str, TensorType],
    others: tuple[Variant, ...] = (),
    extra: Mapping[str, bytes] | None = None,
    **fields: object,
) -> Path:
    members = dict(extra or {})
    submodels, nodes = [], []
    for name, text in texts.items():
        model = onnx.parser.parse_model(text)
        member = f"submodels/{name}/v0-onnxruntime/model.onnx"
        members[member] = model.SerializeToString()
        for variant in others:
            members = {**dict.fromkeys(variant.files.values(), b"nothing"), **members}
        inputs, outputs = ([value.name for value in part] for part in (model.graph.input, model.graph.output))
        variant = Variant("v0-onnxruntime", "onnxruntime", "host", {"model.onnx": member})
        submodels.append(Submodel(name, tuple(inputs), tuple(outputs), (*others, variant)))
        nodes += [
            NodeReport(
                f"{name}_{n.op_type}", n.op_type, "onnxruntime", name, 0.5, tuple(n.input), tuple(n.output),
                {"openvino": "too small"},
            ) for n in model.graph.node if n.op_type != "Constant"
        ]  # fmt: skip
    manifest = Manifest(
        model_name="small", model_sha256="0" * 64, inputs=(NamedType("image", values["image"]),),
        outputs=(NamedType("y", values["y"]),), submodels=tuple(submodels), values=values,
        **{"provenance": {"tools": {"nndeploy": "test"}, "options": {"objective": "priority"}}, **fields},
    )  # fmt: skip
    report = Report(
        model="small",
        objective="priority",
        backends=("openvino", "onnxruntime"),
        nodes=tuple(nodes),
        submodels=tuple(
            SubmodelReport(s.id, "onnxruntime", 1, 1 / len(texts), {"openvino": "too small"}) for s in submodels
        ),
        checks=(CheckReport("whole", "", 0, "y", True, 0.0, 0.0, 1.0),),
    )
    write_bundle(path, manifest, members, report_for_bundle(report))
    with open_bundle(path) as bundle:
        note_made_here(bundle)  # as a compile does
    return path
