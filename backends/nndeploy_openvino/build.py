# SPDX-License-Identifier: Apache-2.0
"""Submodel -> artifact: OpenVINO's IR for any machine, and what the compiler made of it for machines like this one.

    model.xml, model.bin   the IR (graph, weights in float32), taken wherever the blob is not
    model.blob             the compiled model; OpenVINO refuses it on another version or kind of CPU, and the IR is used

Importing the blob takes a quarter of the time of compiling the IR (docs/reference/backends.md). It repeats the
weights, so it is left out above `MAX_BLOB_WEIGHTS`, where it would double a large bundle, and for models so small
that compiling them is as fast. It is made in a process of its own: a compiled model holds counters of the process, and
a fresh one gives the same bytes each time.
Law: the same submodel gives the same bytes.
"""

import subprocess
from pathlib import Path
from typing import Any

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError, NndeployError
from nndeploy.files.file_content import content_of
from nndeploy.plugin.interface import Artifact, BuildOptions
from nndeploy.target.target import Target
from nndeploy_openvino.conversion import Converted, convert, forget_names
from nndeploy_openvino.export_process import export, stand_by
from nndeploy_openvino.files import BLOB_FILE, GRAPH_FILE, REASON_FILE, WEIGHTS_FILE
from nndeploy_openvino.ir_gate import check_ir
from nndeploy_openvino.library import DEVICE, configuration, core, openvino
from nndeploy_openvino.reason import reason_of

MIN_BLOB_OPERATIONS = 64
MIN_BLOB_WEIGHTS = 64 * 2**10
MAX_BLOB_WEIGHTS = 64 * 2**20
EXPORT_SECONDS = 600.0


def build(submodel: ir.Model, target: Target, options: BuildOptions, workdir: Path) -> Artifact:
    """Returns the artifact of a submodel, which the CPU computes in `options.precision` where it can.

    Raises:
        BuildRefusedError: OpenVINO does not convert or compile the submodel, makes a layer of it that is not opened
            here, or it is larger than 2 GiB.
    """
    stand_by()  # before the library is used
    precision = options.precision
    converted = convert(submodel, options.ranges)
    forget_names(converted.model)
    openvino().serialize(converted.model, str(workdir / GRAPH_FILE), str(workdir / WEIGHTS_FILE))
    _check_that_it_opens(workdir)
    if target.is_host and _is_worth_a_blob(converted.model, workdir):
        _export_blob(workdir, precision)
    else:
        _check_that_it_compiles(converted.model, precision)
    names = [name for name in (GRAPH_FILE, WEIGHTS_FILE, BLOB_FILE) if (workdir / name).exists()]
    files = {name: content_of(workdir / name) for name in names}
    metadata = _metadata(converted, precision)
    return Artifact(files, metadata, native_code=BLOB_FILE in files, precision=precision)


def _metadata(converted: Converted, precision: str) -> dict[str, Any]:
    return {
        "inputs": list(converted.inputs),
        "outputs": list(converted.outputs),
        "openvino": str(openvino().__version__),
        **({"limits": limits} if (limits := converted.limits.to_json()) else {}),
        **({} if precision == "fp32" else {"precision": precision}),
    }


def _check_that_it_opens(workdir: Path) -> None:
    """Refuses what the run half would refuse: a layer that the gate does not know."""
    try:
        check_ir((workdir / GRAPH_FILE).read_bytes(), (workdir / WEIGHTS_FILE).read_bytes())
    except NndeployError as err:
        raise BuildRefusedError(err.what) from err


def _is_worth_a_blob(model: Any, workdir: Path) -> bool:
    num_bytes = (workdir / WEIGHTS_FILE).stat().st_size
    return len(model.get_ops()) >= MIN_BLOB_OPERATIONS and MIN_BLOB_WEIGHTS <= num_bytes <= MAX_BLOB_WEIGHTS


def _check_that_it_compiles(model: Any, precision: str) -> None:
    try:
        core().compile_model(model, DEVICE, configuration(None, precision))
    except Exception as err:  # the library's way to say no has many classes
        raise BuildRefusedError(reason_of(err)) from err


def _export_blob(workdir: Path, precision: str) -> None:
    """Compiles the IR in `workdir` in a fresh process, which leaves the blob or a reason there."""
    try:
        status = export(workdir, precision, EXPORT_SECONDS)
    except subprocess.TimeoutExpired as err:
        raise BuildRefusedError(f"OpenVINO did not compile it within {EXPORT_SECONDS:g} s") from err
    if (workdir / REASON_FILE).exists():
        raise BuildRefusedError((workdir / REASON_FILE).read_text(encoding="utf-8"))
    if status != 0 or not (workdir / BLOB_FILE).exists():
        raise BuildRefusedError(f"OpenVINO ended with status {status} while compiling it")
