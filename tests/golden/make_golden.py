# SPDX-License-Identifier: Apache-2.0
"""Writes a bundle of each released format with something of everything, so that every later reader is tried on it.

    python tests/golden/make_golden.py

Everything in it is fixed, also the two ONNX models, so it does not change with the versions of any library. Once a
format has been released its file is never written again: a new format gets a new file and a new script.
"""

import base64
import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np

from nndeploy.bundle.manifest import (
    Compressed,
    Golden,
    ImageInput,
    Limits,
    Manifest,
    NamedType,
    PlacedSubmodel,
    Placing,
    Submodel,
    TargetChain,
    Tolerance,
    Variant,
)
from nndeploy.bundle.values import encode_values
from nndeploy.bundle.writer import write_bundle
from nndeploy.pacing.plan.operators import Operator, Operators
from nndeploy.pacing.plan.operators_file import OPERATORS_NAME, CountedOperators, operators_to_json
from nndeploy.values.types import DimRange, TensorType

PATH = Path(__file__).resolve().parent / "format-1.nnd"
PATH_1_1 = PATH.with_name("format-1.1.nnd")
PATH_1_2 = PATH.with_name("format-1.2.nnd")
PATH_1_3 = PATH.with_name("format-1.3.nnd")
PATH_1_4 = PATH.with_name("format-1.4.nnd")
PATH_1_5 = PATH.with_name("format-1.5.nnd")
PATH_1_6 = PATH.with_name("format-1.6.nnd")
PATH_1_7 = PATH.with_name("format-1.7.nnd")
PATH_1_8 = PATH.with_name("format-1.8.nnd")
PATH_1_9 = PATH.with_name("format-1.9.nnd")
PATH_1_10 = PATH.with_name("format-1.10.nnd")

# <ir_version: 8, opset_import: ["" : 17]>
# head (float[N,1,4,4] x) => (float[N,1,4,4] r) { r = Relu(x) }
HEAD = base64.b64decode(
    "CAg6UgoOCgF4EgFyIgRSZWx1OgASBGhlYWRaHAoBeBIXChUIARIRCgMSAU4KAggBCgIIBAoCCARiHAoBchIXChUIARIRCgMSAU4KAggBCgII"
    "BAoCCARCBAoAEBE="
)
# <ir_version: 8, opset_import: ["" : 17]>
# tail (float[N,1,4,4] r) => (float[N,4] scores) { scores = ReduceMean<axes=[1,2], keepdims=0>(r) }
TAIL = base64.b64decode(
    "CAg6ego5CgFyEgZzY29yZXMiClJlZHVjZU1lYW4qDQoEYXhlc0ABQAKgAQcqDwoIa2VlcGRpbXMYAKABAjoAEgR0YWlsWhwKAXISFwoVCAES"
    "EQoDEgFOCgIIAQoCCAQKAggEYhkKBnNjb3JlcxIPCg0IARIJCgMSAU4KAggEQgQKABAR"
)

IMAGE = TensorType("float32", ("N", 1, 4, 4))
SCORES = TensorType("float32", ("N", 4))
TABLE = TensorType("float32", (40, 40))
WORDS = TensorType("string", (2,))

CONSTANTS = {
    "table": np.arange(1600, dtype=np.float32).reshape(40, 40),
    "words": np.array(["zero", "\N{GREEK SMALL LETTER ALPHA}"], dtype=object),
}
X = (np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4) - 8) / 4
R = np.maximum(X, 0)
OUTPUTS = {"scores": R.mean(axis=(1, 2), dtype=np.float32), "same": X, **CONSTANTS}

MEMBERS = {
    "submodels/head/onnxruntime/model.onnx": HEAD,
    "submodels/tail/onnxruntime/model.onnx": TAIL,
    "weights/constants.values": encode_values(CONSTANTS),
    "goldens/0/inputs.values": encode_values({"x": X}),
    "goldens/0/outputs.values": encode_values(OUTPUTS),
    "goldens/0/boundaries.values": encode_values({"r": R}),
}


def _submodel(name: str, value_in: str, value_out: str) -> Submodel:
    files = {"model.onnx": f"submodels/{name}/onnxruntime/model.onnx"}
    return Submodel(name, (value_in,), (value_out,), (Variant("onnxruntime", "onnxruntime", "any", files),))


MANIFEST = Manifest(
    model_name="golden",
    model_sha256="5a" * 32,
    inputs=(NamedType("x", IMAGE),),
    outputs=(
        NamedType("scores", SCORES),
        NamedType("same", IMAGE),
        NamedType("table", TABLE),
        NamedType("words", WORDS),
    ),
    submodels=(_submodel("head", "x", "r"), _submodel("tail", "r", "scores")),
    values={"x": IMAGE, "r": IMAGE, "scores": SCORES, "same": IMAGE, "table": TABLE, "words": WORDS},
    ranges={"N": DimRange(1, 8, 4)},
    aliases={"same": "x"},
    constants="weights/constants.values",
    goldens=(
        Golden("goldens/0/inputs.values", "goldens/0/outputs.values", "goldens/0/boundaries.values", "generated"),
    ),
    tolerances={"float32": Tolerance(rtol=1e-4, atol=1e-6)},
    checks=({"scope": "whole", "output": "scores", "ok": True, "max_abs": 0.0},),
    image_input=ImageInput("x", 4, 4, "L", "NCHW", (127.5,), (63.75,), ("left", "midleft", "midright", "right")),
    provenance={"tools": {"nndeploy": "0.1.0"}, "options": {"threads": None}},
)

ENGINE = Variant(
    "v0-tensorrt", "tensorrt", "RTX 4090", {"engine.trt": "submodels/rtx4090.s0/v0-tensorrt/engine.trt"},
    metadata={"library": "rtx"}, requires={"arch": "x86_64", "compute_capability": ["8.9"]}, native_code=True,
)  # fmt: skip
PORTABLE_ENGINE = replace(ENGINE, id="v1-tensorrt", requires={"compute_capability_min": "8.0"})
MANIFEST_1_1 = replace(
    MANIFEST,
    target_chains=(
        TargetChain(
            "rtx4090",
            "RTX 4090",
            (Submodel("rtx4090.s0", ("x",), ("scores",), (ENGINE, PORTABLE_ENGINE)),),
            {name: kind for name, kind in MANIFEST.values.items() if name != "r"},
        ),
    ),
)
MEMBERS_1_1 = {**MEMBERS, "submodels/rtx4090.s0/v0-tensorrt/engine.trt": b"an engine"}

MANIFEST_1_2 = replace(MANIFEST, ranges={"N": DimRange(1, 9, 5, step=4)})

LIBRARY = "pacing/x86_64/pace.so"
MANIFEST_1_3 = replace(MANIFEST, pace_libraries={"x86_64": LIBRARY})
MEMBERS_1_3 = {**MEMBERS, LIBRARY: b"a library of delays"}

HEAD_OPERATORS = Operators((("x", 64), ("r", 64)), (Operator("Relu", (0,), (1,), flops=16, constant_bytes=0),))
TAIL_OPERATORS = Operators(
    (("r", 64), ("scores", 16)), (Operator("ReduceMean", (0,), (1,), flops=16, constant_bytes=0),)
)
COUNTED = CountedOperators({"x": X.shape}, {"head": HEAD_OPERATORS, "tail": TAIL_OPERATORS})
MANIFEST_1_4 = replace(MANIFEST_1_3, pace_operators=OPERATORS_NAME)
MEMBERS_1_4 = {**MEMBERS_1_3, OPERATORS_NAME: operators_to_json(COUNTED)}

LIMITS = {"scores": Limits(0.5, 0.25, 0.25, 0.125), "words": Limits(0.0, 0.0, 0.0, 0.0, rows_axis=0, unmatched=0.5)}
MANIFEST_1_5 = replace(MANIFEST, goldens=(replace(MANIFEST.goldens[0], limits=LIMITS),))

MACHINES = [{"arch": "aarch64", "cpu_features": ["asimd"]}, {"arch": "x86_64", "cpu_features": ["sse2"]}]
HEAD_SUBMODEL, TAIL_SUBMODEL = MANIFEST.submodels
ANYWHERE = replace(HEAD_SUBMODEL.variants[0], requires={"machines": MACHINES})
MANIFEST_1_6 = replace(MANIFEST_1_5, submodels=(replace(HEAD_SUBMODEL, variants=(ANYWHERE,)), TAIL_SUBMODEL))

# What is stored of the golden's outputs, with a piece of each kind. Fixed: not every zlib deflates to the same bytes.
DEFLATED = base64.b64decode(
    "eNqdUN1qwjAYjT8PsNvdyXcdJK1BxAv1ai9hSolruslqI03ccFLoo/gkWx/FR1matqChOPCU8H05H+ecrxmiW6z6qBMtPWzqkzMfOHO39tyclniu"
    "y6wJOAGB+Qkirnko41gJrWC+JnhKAwyRPu4FzOFl4gMG9c6r29rDHqaYBjkGr0M7pXhG7oit0O8QzqrUO1JKMCWVOAx3QnOrDiufNI3EPpHH8SdP"
    "DkKNzVZwYqD4TjAzZzbIdAwIA8xqe3uPE8n1xLfsxzaNLKlFqmRmORvNbv7ZkK8yE8px9h53rl013yTuuv6jpu1TMfiSWdTsutViV7VrBt8ik1bB"
    "2IFMNmb54NpS6WybvqlbTz/Ic8jzUQ30Hy7luVihwnyr4lxeyl+LH7RYWiBULBAqzUGmHy1Rrz/4Ax2YwTI="
)
REAL = MEMBERS["goldens/0/outputs.values"]
SMALLER = Compressed(hashlib.sha256(REAL).hexdigest(), len(REAL), ("weights/constants.values",))
MANIFEST_1_7 = replace(MANIFEST, compressed={"goldens/0/outputs.values": SMALLER})
MEMBERS_1_7 = {**MEMBERS, "goldens/0/outputs.values": DEFLATED}

PLACED = {"head": PlacedSubmodel("cpu:0", 0, 128), "tail": PlacedSubmodel("cpu:1", 0, 80)}
ENGINE_PLACED = {"rtx4090.s0": PlacedSubmodel("cuda:1", 0, 80)}
MANIFEST_1_8 = replace(
    MANIFEST_1_1,
    placings={
        "portable": Placing(PLACED, {"x": 64, "r": 64, "scores": 16}),
        "rtx4090": Placing(ENGINE_PLACED, {"x": 64, "scores": 16}),
    },
)

MANIFEST_1_9 = replace(MANIFEST, defaults={"x": "goldens/0/inputs.values"})

BUILT_FOR = {"N": DimRange(1, 8, 1), "x.1": DimRange(4, 16, 4, step=4)}
MANIFEST_1_10 = replace(MANIFEST_1_1, target_chains=(replace(MANIFEST_1_1.target_chains[0], ranges=BUILT_FOR),))

REPORT = {"model": "golden", "objective": "priority", "backends": ["onnxruntime"], "nodes": [], "submodels": []}


WRITTEN = {
    PATH.name: (MANIFEST, MEMBERS),
    PATH_1_1.name: (MANIFEST_1_1, MEMBERS_1_1),
    PATH_1_2.name: (MANIFEST_1_2, MEMBERS),
    PATH_1_3.name: (MANIFEST_1_3, MEMBERS_1_3),
    PATH_1_4.name: (MANIFEST_1_4, MEMBERS_1_4),
    PATH_1_5.name: (MANIFEST_1_5, MEMBERS),
    PATH_1_6.name: (MANIFEST_1_6, MEMBERS),
    PATH_1_7.name: (MANIFEST_1_7, MEMBERS_1_7),
    PATH_1_8.name: (MANIFEST_1_8, MEMBERS_1_1),
    PATH_1_9.name: (MANIFEST_1_9, MEMBERS),
    PATH_1_10.name: (MANIFEST_1_10, MEMBERS_1_1),
}


def make(folder: Path, name: str) -> Manifest:
    """Writes the bundle of a format into `folder` under its name and returns its manifest."""
    manifest, members = WRITTEN[name]
    return write_bundle(folder / name, manifest, members, REPORT)


if __name__ == "__main__":
    for released in WRITTEN:
        if not (PATH.parent / released).exists():
            make(PATH.parent, released)
            print(released)
