# SPDX-License-Identifier: Apache-2.0
"""The whole networks: ONNX's light ones, and the real ones where a folder of them is given, with their inputs.

A network of free sizes is compiled for the sizes of its sample.
"""

import json
import re
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from gpucheck.light_networks import light_network, names
from gpucheck.options import Options
from gpucheck.reference import random_inputs, session_of
from gpucheck.tiers import why_unusable

FALLBACK = ("onnxruntime", "reference")
ALL = "all"
FIRST = ("ultraface_rfb320", "fastestdet", "ppocr_det_mobile_v2", "unet_stress_field", "magika_standard_v3_3")
"""Real models that are tried first."""


@dataclass(frozen=True, slots=True)
class Network:
    """A network: its file or itself, one sample by input name, the sizes to compile for where the file leaves them."""

    name: str
    source: "str | onnx.ModelProto"
    sample: dict[str, Any]
    shapes: dict[str, tuple[int, ...]]
    quantised: bool


def network_names(options: Options) -> list[str]:
    """Returns "light/resnet50" and, for a folder of real models, "real/ultraface_rfb320", in turns."""
    real = sorted(_index(options), key=lambda name: (name not in FIRST, name))
    pairs = zip_longest((f"light/{name}" for name in names(options.all_networks)), (f"real/{name}" for name in real))
    return [name for pair in pairs for name in pair if name and re.search(options.match, name)]


def combinations(options: Options) -> list[str]:
    """Returns each usable tier on its own, and all of them together where there are several."""
    usable = [tier for tier in options.tiers if not why_unusable(tier)]
    return [*usable, ALL] if len(usable) > 1 else usable


def backends_of(combination: str, options: Options) -> list[str]:
    """Returns the backends of a combination in order."""
    tiers = combinations(options)[:-1] if combination == ALL else [combination]
    return [*tiers, *FALLBACK]


def network(name: str, options: Options) -> Network:
    """Returns a network by its name."""
    kind, _, short = name.partition("/")
    if kind == "light":
        proto = light_network(short)
        return Network(name, proto, random_inputs(session_of(proto)), {}, quantised=False)
    path = Path(options.models, f"{short}.onnx")
    proto = onnx.load(path)
    sample = _sample(options, short)
    shapes = {i.name: sample[i.name].shape for i in proto.graph.input if i.name in sample and _is_free(i)}
    return Network(name, str(path), sample, shapes, _is_quantised(proto))


def bundle_path(name: str, combination: str, options: Options) -> Path:
    """Returns where the bundle of a network is kept during the run."""
    return Path(options.workdir, f"{name.replace('/', '-')}.{combination}.nnd")


def _index(options: Options) -> dict[str, Any]:
    path = Path(options.models, "index.json")
    if not options.models or not path.is_file():
        return {}
    return {entry["name"]: entry for entry in json.loads(path.read_text(encoding="utf-8"))["models"]}


def _sample(options: Options, name: str) -> dict[str, Any]:
    entry = _index(options)[name]
    path = Path(options.models, "samples", f"{name}.npz")
    if not path.is_file():
        return {}
    with np.load(path, allow_pickle=False) as arrays:
        keys = [key for key in arrays.files if key.startswith("in") and key in entry["sample_keys"]]
        return {entry["sample_keys"][key]: arrays[key] for key in keys}


def _is_quantised(proto: onnx.ModelProto) -> bool:
    """Returns whether a model rounds to quantised values, as nndeploy's tolerances distinguish."""
    rounding = ("QuantizeLinear", "DynamicQuantizeLinear", "ConvInteger", "MatMulInteger")
    return any(node.op_type in rounding or node.op_type.startswith("QLinear") for node in proto.graph.node)


def _is_free(value: onnx.ValueInfoProto) -> bool:
    tensor = value.type.tensor_type
    return not tensor.HasField("shape") or any(not dim.HasField("dim_value") for dim in tensor.shape.dim)
