# SPDX-License-Identifier: Apache-2.0
"""The process that builds one engine: `request.json` and `model.onnx` of the working folder -> `engine.trt`.

Its memory is laid out as in every other run, because that decides in which order TensorRT writes an engine's outputs
down; measured in docs/internals/tensorrt.md. It imports no onnx.
"""

import json
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from nndeploy.backend_kit.fixed_layout import is_layout_fixed, start_again_with_fixed_layout
from nndeploy.errors import BuildRefusedError, UnavailableError
from nndeploy_tensorrt.artifact_facts import EngineFacts, metadata_from_facts
from nndeploy_tensorrt.engine import EngineRequest, InputSizes, build_engine
from nndeploy_tensorrt.files import ENGINE_FILE
from nndeploy_tensorrt.library import loaded

MODEL_FILE = "model.onnx"
REQUEST_FILE = "request.json"
RESULT_FILE = "result.json"

T = TypeVar("T")

_TIMES_AND_MEMORY = re.compile(r"\d ?(?:ms|s|seconds)\b|MemUsage|\bMiB\b")


def main() -> None:
    """Builds what the working folder asks for and leaves `result.json`, also where the library refuses."""
    start_again_with_fixed_layout()
    request = request_from_json(json.loads(Path(REQUEST_FILE).read_text(encoding="utf-8")))
    result: dict[str, Any] = {"refused": "", "is_layout_fixed": is_layout_fixed()}
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
    profiles = tuple(tuple(_sizes_from_json(sizes) for sizes in profile) for profile in data["profiles"])
    return EngineRequest(data["flavour"], tuple(data["capabilities"]), data["memory_bytes"], profiles)


def _sizes_from_json(data: dict[str, Any]) -> InputSizes:
    return InputSizes(data["name"], tuple(data["min"]), tuple(data["best"]), tuple(data["max"]))


def reproducible(lines: Iterable[str]) -> list[str]:
    """Returns the lines of a log that do not tell how long something took or what memory it needed meanwhile."""
    return [line for line in lines if not _TIMES_AND_MEMORY.search(line)]


if __name__ == "__main__":
    main()
