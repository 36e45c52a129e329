# SPDX-License-Identifier: Apache-2.0
"""ONNX models in the form that the installed onnxruntime reads: versions no newer than it knows.

In: an `onnx_ir` model. Out: its bytes, with operator set and format versions lowered where every operator means the
same (see `nndeploy.backend_kit.transforms.operator_versions`), without what ends the process (`safe_operators`), and
without what makes the library's settings fail (`unshared_weights`). What the library knows is asked of it, once.
"""

from functools import cache

import onnx
import onnx_ir as ir
from onnx import TensorProto, helper

from nndeploy.backend_kit.query import bytes_of
from nndeploy.backend_kit.transforms.operator_versions import operator_newer_than, restamp
from nndeploy.errors import BuildRefusedError
from nndeploy_onnxruntime.library import inference_session, session_options
from nndeploy_onnxruntime.safe_operators import with_safe_operators
from nndeploy_onnxruntime.unshared_weights import unshare_int8_weights


def bytes_for_onnxruntime(model: ir.Model) -> bytes:
    """Returns the bytes of a model; the model stays as it is.

    Raises:
        BuildRefusedError: an operator is newer than the library, or the model is larger than 2 GiB.
    """
    newest = newest_opsets()
    if newer := operator_newer_than(model, newest):
        raise BuildRefusedError(f"{newer} is newer than what this onnxruntime knows (opset {newest['']})")
    proto = ir.to_proto(with_safe_operators(model))
    restamp(proto, newest, newest_ir_version())
    unshare_int8_weights(proto)
    return bytes_of(proto)


@cache
def newest_opsets() -> dict[str, int]:
    """Returns the newest version of each of ONNX's own operator sets that the library takes."""
    schemas = onnx.defs.get_all_schemas_with_history()
    known = {domain: max(s.since_version for s in schemas if s.domain == domain) for domain in ("", "ai.onnx.ml")}
    return {domain: _newest(domain, version) for domain, version in known.items()}


@cache
def newest_ir_version() -> int:
    """Returns the newest version of the file format that the library takes."""
    return next((v for v in range(onnx.IR_VERSION, 3, -1) if _is_taken(_tiny({"": 13}, v))), 3)


def _newest(domain: str, newest: int) -> int:
    opsets = ({"": 13, domain: version} for version in range(newest, 1, -1))
    return next((opset[domain] for opset in opsets if _is_taken(_tiny(opset, 7))), 1)


def _tiny(opsets: dict[str, int], ir_version: int) -> bytes:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "tiny", [x], [y])
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    return bytes(helper.make_model(graph, opset_imports=imports, ir_version=ir_version).SerializeToString())


def _is_taken(model: bytes) -> bool:
    try:
        inference_session(model, session_options(threads=1))
    except Exception:  # the library's way to say no has many classes
        return False
    return True
