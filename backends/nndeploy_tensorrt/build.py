# SPDX-License-Identifier: Apache-2.0
"""Submodel -> artifact: the engine, built in a process of its own.

    model.onnx  request.json   ->   build_process.py   ->   engine.trt  result.json

A process of its own for three reasons: a library that crashes on a model is a refusal; whatever it writes stays in
`workdir`; and the order of an engine's outputs inside its file follows from addresses in memory, which are the same
in every run only where the address space is not randomised. Law: the same submodel gives the same bytes, or the
artifact says that it need not.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import onnx_ir as ir

from nndeploy.backend_kit.reasons import one_line_reason
from nndeploy.errors import BuildRefusedError
from nndeploy.plugin.interface import Artifact
from nndeploy.values.types import DimRange
from nndeploy_tensorrt.artifact_facts import facts_from_metadata
from nndeploy_tensorrt.ask import with_sizes
from nndeploy_tensorrt.build_process import MODEL_FILE, REQUEST_FILE, RESULT_FILE
from nndeploy_tensorrt.engine import EngineRequest
from nndeploy_tensorrt.files import ENGINE_FILE
from nndeploy_tensorrt.library import RTX
from nndeploy_tensorrt.model_bytes import bytes_for_parser
from nndeploy_tensorrt.serving import Serving
from nndeploy_tensorrt.sizes import unknown_size

MAX_NOISE = 2000
LIBRARY_PATH = "LD_LIBRARY_PATH"
VISIBLE = "CUDA_VISIBLE_DEVICES"


def build(submodel: ir.Model, serving: Serving, arch: str, ranges: Mapping[str, DimRange], workdir: Path) -> Artifact:
    """Returns the artifact of a submodel.

    Raises:
        BuildRefusedError: the library refuses the model or crashes on it, no library serves the target, or an input
            has a size that nobody declared.
    """
    if not serving.flavour:
        raise BuildRefusedError(serving.reason)
    for value in submodel.graph.inputs:
        if why := unknown_size(value, ranges):
            raise BuildRefusedError(why)
    result = _built_with_profiles(submodel, serving, ranges, workdir)
    return Artifact(
        files={ENGINE_FILE: (workdir / ENGINE_FILE).read_bytes()},
        metadata=result["metadata"],
        requires={"arch": arch, **serving.requires},
        native_code=True,
        deterministic=_is_reproducible(serving, result),
        log="\n".join(result["log"]),
    )


def _is_reproducible(serving: Serving, result: Mapping[str, Any]) -> bool:
    """Returns whether the same request gives the same bytes: for fixed sizes (docs/internals/tensorrt.md).

    The compiler names what it makes for dynamic sizes in the order in which its threads come to it, and the classic
    library chooses kernels by timing them.
    """
    is_static = facts_from_metadata(result["metadata"]).is_static
    return serving.flavour == RTX.flavour and is_static and bool(result["is_layout_fixed"])


def _built_with_profiles(
    submodel: ir.Model, serving: Serving, ranges: Mapping[str, DimRange], workdir: Path
) -> dict[str, Any]:
    """Returns the result with a profile for each piece of a wide range, where that is refused with one for the whole.

    Pieces are tuned for sizes that nobody named: where only multiples of a size run, the library refuses others.
    """
    model = bytes_for_parser(submodel)
    request = EngineRequest(serving.flavour, serving.capabilities, serving.memory_bytes)
    several = with_sizes(request, submodel, ranges)
    try:
        return _built(model, several, workdir)
    except BuildRefusedError as err:
        if len(several.profiles) < 2:
            raise
        result = _built(model, with_sizes(request, submodel, ranges, 1), workdir)
        return {**result, "log": [f"one profile instead of {len(several.profiles)}: {err}", *result["log"]]}


def _built(model: bytes, request: EngineRequest, workdir: Path) -> dict[str, Any]:
    """Returns what the building process left in `result.json`; the engine lies beside it."""
    (workdir / RESULT_FILE).unlink(missing_ok=True)
    (workdir / MODEL_FILE).write_bytes(model)
    (workdir / REQUEST_FILE).write_text(json.dumps(asdict(request)), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-s", "-P", "-m", "nndeploy_tensorrt.build_process"],
        cwd=workdir,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    try:
        result: dict[str, Any] = json.loads((workdir / RESULT_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError as err:
        raise BuildRefusedError(_what_happened(done)) from err
    if result["refused"]:
        raise BuildRefusedError(result["refused"])
    return result


def _environment() -> dict[str, str]:
    """Returns an environment of the same size in every folder, so that memory is laid out alike."""
    kept = {name: os.environ[name] for name in (LIBRARY_PATH, VISIBLE) if name in os.environ}
    fixed = {"HOME": ".", "TMPDIR": ".", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0", "CUDA_CACHE_DISABLE": "1"}
    return {**kept, **fixed}


def _what_happened(done: "subprocess.CompletedProcess[bytes]") -> str:
    ended = f"was killed by signal {-done.returncode}" if done.returncode < 0 else f"ended with {done.returncode}"
    noise = done.stdout[-MAX_NOISE:].decode(errors="replace").strip().splitlines()
    return one_line_reason(f"the builder {ended}{': ' + noise[-1] if noise else ''}")
