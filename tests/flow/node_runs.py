# SPDX-License-Identifier: Apache-2.0
"""Bundles in Node, by the npm package: arrays in, arrays or refusals out."""

import atexit
import base64
import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nndeploy_kernels import build_web
from nndeploy_kernels.build import LIBRARIES
from nndeploy_kernels.levels import WEB_ARCH, runner

SCRIPT = Path(__file__).with_name("in_node.mjs")
RELAXED_FLAG = "--experimental-wasm-relaxed-simd"
"""The option by which older engines take relaxed SIMD."""


class NodeRefusalError(Exception):
    """What the package threw: its class, its code and its text."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(error["text"])
        self.kind, self.code, self.text = error["kind"], error["code"], error["text"]


def node() -> str:
    """Returns the program Node; skips where there is none."""
    return shutil.which("node") or pytest.skip("there is no node")


@cache
def package() -> Path:
    """Returns the folder of the npm package."""
    build_web.build_package()
    return LIBRARIES / runner(WEB_ARCH)


@cache
def relaxed_flags() -> list[str]:
    """Returns how Node is called so that it has relaxed SIMD; skips where it has none."""
    code = f'import("{package()}/nndeploy.mjs").then((m) => process.exit(m.hasRelaxedSimd ? 0 : 1))'
    for flags in ([], [RELAXED_FLAG]):
        if subprocess.run([node(), *flags, "-e", code], capture_output=True, check=False).returncode == 0:
            return flags
    pytest.skip("this Node has no relaxed SIMD")


def plain(array: Any) -> dict[str, Any]:
    """Returns an array as JSON has it."""
    if array.dtype == object:
        return {"dtype": "text", "shape": list(array.shape), "data": array.ravel().tolist()}
    data = base64.b64encode(np.asarray(array).tobytes()).decode("ascii")
    return {"dtype": str(array.dtype), "shape": list(array.shape), "data": data}


def array(value: Mapping[str, Any]) -> Any:
    if isinstance(value["data"], list):
        made = np.empty(len(value["data"]), object)
        made[:] = [one if isinstance(one, str) else {key: float(score) for key, score in one} for one in value["data"]]
        return made.reshape(value["shape"])
    return np.frombuffer(base64.b64decode(value["data"]), value["dtype"]).reshape(value["shape"])


def in_node(
    bundles: Sequence[Path | None], runs: Sequence[Mapping[str, Any]], *, module: Path | None = None,
    flags: Sequence[str] = (), **more: Any,
) -> list[dict[str, Any]]:  # fmt: skip
    """Returns what came of each bundle, as in_node.mjs says it; None is the one inside the module."""
    job = {
        "package": str(module or package() / "nndeploy.mjs"), "bundles": [one and str(one) for one in bundles],
        "runs": [{name: plain(one) for name, one in values.items()} for values in runs], **more,
    }  # fmt: skip
    found: list[dict[str, Any]] = answering_process(SCRIPT, *flags)(job)
    return found


@cache
def answering_process(script: Path, *flags: str) -> Callable[[Any], Any]:
    """Returns what asks a script of lines of JSON, in a Node that is kept until the tests end."""
    command = [node(), *flags, script]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(process.communicate)
    assert process.stdin is not None
    assert process.stdout is not None
    given, answers = process.stdin, process.stdout

    def ask(job: Any) -> Any:
        given.write(json.dumps(job) + "\n")
        given.flush()
        line = answers.readline()
        assert line, f"{script.name} ended: {process.wait()}"
        return json.loads(line)

    return ask


def outputs_of(result: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the outputs of a run.

    Raises:
        NodeRefusalError: it failed.
    """
    if "error" in result:
        raise NodeRefusalError(result["error"])
    return {name: array(value) for name, value in result.items()}


def ran(bundle: Path | None, inputs: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Returns the outputs of one run of a bundle.

    Raises:
        NodeRefusalError: the bundle or the inputs are refused.
    """
    result = in_node([bundle], [inputs], **more)[0]
    if "error" in result:
        raise NodeRefusalError(result["error"])
    return outputs_of(result["runs"][0])
