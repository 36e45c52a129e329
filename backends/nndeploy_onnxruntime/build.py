# SPDX-License-Identifier: Apache-2.0
"""Submodel -> artifact: the model as ONNX Runtime optimised it, ready to be loaded.

    model.onnx    the optimised graph and its small constants
    weights.bin   constants of `EXTERNAL_BYTES` and more, used in place at load (absent if there are none, or
                  the model has bodies and its weights fit into one message; if they do not, the graph is as it was)

The level is "extended": what is left out depends on the CPU (blocked layouts of convolutions) and is done at load,
which costs about a millisecond and gives full speed; see docs/reference/backends.md for the figures of each level.
Law: the same submodel gives the same bytes.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.files.file_content import content_of
from nndeploy.files.onnx_external_data import named_files
from nndeploy.plugin.interface import Artifact, BuildOptions, Json
from nndeploy_onnxruntime.cut_operators import cut_operators
from nndeploy_onnxruntime.element_types import RAW_TYPES
from nndeploy_onnxruntime.library import VNNI, onnxruntime, session_options, without_packing
from nndeploy_onnxruntime.mapped_weights import session_with_weights, with_weights_in
from nndeploy_onnxruntime.model_bytes import bytes_for_onnxruntime
from nndeploy_onnxruntime.reason import reason_of

MODEL_FILE = "model.onnx"
WEIGHTS_FILE = "weights.bin"
EXTERNAL_BYTES = 64 * 1024
_QUANTISED = re.compile(rb"Integer|QLinear|Quantize|QGemm|QAttention")
"""What the name of every operator of 8 bits has; a weight that holds it does no harm."""
EXACT_MACHINES: list[Json] = [
    *({"arch": "x86_64", "cpu_features": [flag]} for flag in sorted(VNNI)),
    {"arch": "aarch64", "cpu_features": []},
]
"""Machines whose products of 8 bits are exact as the library comes."""
OWN_DOMAINS = frozenset({"", "ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview", "com.microsoft"})


def build(submodel: ir.Model, options: BuildOptions, workdir: Path) -> Artifact:
    """Returns the artifact of a submodel; where it will be paced its long operators are cut.

    Raises:
        BuildRefusedError: the library refuses the model, or it is larger than 2 GiB.
    """
    _refuse_mixed_borders(submodel)
    libraries = options.custom_op_libraries
    if options.pace:
        submodel = submodel.clone()
        cut_operators(submodel, options.ranges)
    model = bytes_for_onnxruntime(submodel)
    try:
        _save(model, _has_bodies(submodel), libraries, workdir)
    except Exception as err:  # the library's way to say no has many classes
        raise BuildRefusedError(reason_of(err)) from err
    names = [name for name in (MODEL_FILE, WEIGHTS_FILE) if (workdir / name).exists()]
    requires: dict[str, Json] = {}
    if domains := custom_domains(submodel):
        requires["custom_ops"] = [*domains]
    if not _has_exact_products(model, libraries):
        requires["machines"] = EXACT_MACHINES
    return Artifact(files={name: content_of(workdir / name) for name in names}, requires=requires)


def _has_exact_products(model: bytes, libraries: Sequence[str]) -> bool:
    """Returns whether a model's products of 8 bits are exact on every processor: those of two int8 need VNNI."""
    if not _QUANTISED.search(model):
        return True
    options = without_packing(session_options(1, libraries, exact_products=True))
    options.graph_optimization_level = onnxruntime().GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    try:
        session_with_weights(model, options)
    except Exception:  # the library's way to say no has many classes; here it has no kernel for int8 by uint8
        return False
    return True


def _save(model: bytes, has_bodies: bool, libraries: Sequence[str], workdir: Path) -> None:
    """Writes the artifact's files: the optimised model or, where the library cannot write that, the model as it is."""
    if has_bodies and named_files(model):
        (workdir / MODEL_FILE).write_bytes(with_weights_in(model, workdir, WEIGHTS_FILE))
    else:
        session_with_weights(model, _saving_options(libraries, workdir, with_weights=not has_bodies))


def custom_domains(model: ir.Model) -> list[str]:
    """Returns the operator domains that need a library given at load, sorted."""
    functions = {function.domain for function in model.functions.values()}
    used = {node.domain for node in model.graph.all_nodes()}
    used |= {node.domain for function in model.functions.values() for node in function.all_nodes()}
    return sorted(used - functions - OWN_DOMAINS)


def _has_bodies(model: ir.Model) -> bool:
    """Returns whether some node has a body (If, Loop, Scan): the library finds no weights in memory for those."""
    return any(True for _ in model.graph.subgraphs())


def _saving_options(libraries: Sequence[str], workdir: Path, with_weights: bool) -> Any:
    options = without_packing(
        session_options(1, libraries, exact_products=False)
    )  # that is for the processor which opens it
    options.graph_optimization_level = onnxruntime().GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(workdir / MODEL_FILE)
    if not with_weights:
        return options
    external = "session.optimized_model_external_initializers_"
    options.add_session_config_entry(f"{external}file_name", WEIGHTS_FILE)
    options.add_session_config_entry(f"{external}min_size_in_bytes", str(EXTERNAL_BYTES))
    return options


def _refuse_mixed_borders(submodel: ir.Model) -> None:
    """Refuses borders of both kinds: types that numpy lacks cross as raw memory, text, lists and optionals do not."""
    border = [*submodel.graph.inputs, *submodel.graph.outputs]
    raw = next((value for value in border if _crosses_as_raw_memory(value)), None)
    other = next((value for value in border if _crosses_as_object(value)), None)
    if raw is not None and other is not None:
        raise BuildRefusedError(f"{raw.name!r} ({raw.dtype}) and {other.name!r} cannot cross together")


def _crosses_as_raw_memory(value: ir.Value) -> bool:
    return value.dtype is not None and value.dtype.numpy().name in RAW_TYPES


def _crosses_as_object(value: ir.Value) -> bool:
    is_tensor = value.type is None or isinstance(value.type, ir.TensorType)
    return not is_tensor or value.dtype == ir.DataType.STRING
