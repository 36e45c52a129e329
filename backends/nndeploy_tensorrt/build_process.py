# SPDX-License-Identifier: Apache-2.0
"""The process that builds one engine: `request.json` and `model.onnx` of the working folder -> `engine.trt`.

It starts itself once more without address space randomisation, if the kernel lets it: where things lie in memory
decides in which order TensorRT writes an engine's outputs down. It imports no onnx.

Source: personality(2), ADDR_NO_RANDOMIZE; measured in docs/tensorrt.md.
"""

import contextlib
import ctypes
import json
import os
import re
import resource
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from nndeploy.errors import UnavailableError
from nndeploy.plugin.interface import BuildRefusedError
from nndeploy_tensorrt.artifact_facts import EngineFacts, metadata_from_facts
from nndeploy_tensorrt.engine import EngineRequest, InputSizes, build_engine
from nndeploy_tensorrt.files import ENGINE_FILE
from nndeploy_tensorrt.library import loaded

MODEL_FILE = "model.onnx"
REQUEST_FILE = "request.json"
RESULT_FILE = "result.json"

T = TypeVar("T")

_ADDR_NO_RANDOMIZE = 0x0040000
_ASK = 0xFFFFFFFF
_STACK_BYTES = 8 * 1024 * 1024
_STARTED_AGAIN = "NNDEPLOY_FIXED_LAYOUT"
_TIMES_AND_MEMORY = re.compile(r"\d ?(?:ms|s|seconds)\b|MemUsage|\bMiB\b")


def main() -> None:
    """Builds what the working folder asks for and leaves `result.json`, also where the library refuses."""
    if _STARTED_AGAIN not in os.environ:
        _start_again()
    request = request_from_json(json.loads(Path(REQUEST_FILE).read_text(encoding="utf-8")))
    result: dict[str, Any] = {"refused": "", "is_layout_fixed": _is_layout_fixed()}
    try:
        engine = in_own_arena(lambda: build_engine(Path(MODEL_FILE).read_bytes(), request))
        Path(ENGINE_FILE).write_bytes(engine.data)
        version = loaded(request.flavour).__version__
        facts = EngineFacts(request.flavour, version, request.capabilities, engine.inputs, engine.outputs)
        result |= {"metadata": metadata_from_facts(facts), "log": reproducible(engine.log)}
    except (BuildRefusedError, UnavailableError) as err:
        result["refused"] = str(err)
    Path(RESULT_FILE).write_text(json.dumps(result), encoding="utf-8")


def in_own_arena(work: Callable[[], T]) -> T:
    """Returns what `work` returns; it runs in a thread of its own.

    The C library gives a new thread memory of its own, at an address that does not follow from what Python allocated
    before: the environment, the folder, whether modules had to be compiled.
    """
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def request_from_json(data: dict[str, Any]) -> EngineRequest:
    """Returns the request that `dataclasses.asdict` and JSON made plain data of."""
    sizes = tuple(
        InputSizes(size["name"], tuple(size["min"]), tuple(size["best"]), tuple(size["max"])) for size in data["sizes"]
    )
    return EngineRequest(data["flavour"], tuple(data["capabilities"]), data["memory_bytes"], sizes)


def reproducible(lines: Iterable[str]) -> list[str]:
    """Returns the lines of a log that do not tell how long something took or what memory it needed meanwhile."""
    return [line for line in lines if not _TIMES_AND_MEMORY.search(line)]


def _is_layout_fixed() -> bool:
    """Returns whether memory is laid out as in every other run."""
    return bool(_persona(ctypes.CDLL(None)) & _ADDR_NO_RANDOMIZE)


def _start_again() -> NoReturn:
    """Starts this process once more, with its memory laid out as in every other run if the kernel lets it."""
    libc = ctypes.CDLL(None)
    libc.personality(ctypes.c_ulong(_persona(libc) | _ADDR_NO_RANDOMIZE))  # refused: the next start sees it
    _, hard = resource.getrlimit(resource.RLIMIT_STACK)
    with contextlib.suppress(ValueError):
        resource.setrlimit(resource.RLIMIT_STACK, (_STACK_BYTES, hard))  # it decides where mappings begin
    os.execve(sys.executable, sys.orig_argv, {**os.environ, _STARTED_AGAIN: "1"})  # noqa: S606 - itself, no shell


def _persona(libc: ctypes.CDLL) -> int:
    persona: int = libc.personality(ctypes.c_ulong(_ASK))
    return 0 if persona == -1 else persona


if __name__ == "__main__":
    main()
