# SPDX-License-Identifier: Apache-2.0
"""The planner's side that knows cuDNN: `python -m nndeploy_cudnn.planner_child` answers one question a line.

    first line in    the GPU's cuDNN descriptor (JSON)         first line out   {"version": 92800, "is_fixed": true}
                                                                                or {"error": ...}
    further lines    {"graph": ..., "modes": [...]}            each line out    {"plan": ...} or {"error": ...}

One process serves one GPU: cuDNN 9.28 keeps compiled kernels by graph and not by architecture, so in a process that
has made a plan for another GPU it puts that one's code into the next plan (seen: sm_89 code in a plan for sm_75).

Into plans with code compiled for them cuDNN writes structures of which it set only a part; the rest is what the stack
held before: addresses, and the guard that each process draws by lot. So the process lays its memory out as every other
run does, and answers in a thread with a fixed guard: then the same questions get the same bytes.
"""

import base64
import contextlib
import ctypes
import json
import os
import struct
import sys
from typing import Any

from nndeploy.backend_kit.fixed_layout import is_layout_fixed, start_again_with_fixed_layout
from nndeploy.errors import UnavailableError, one_line
from nndeploy_cudnn.engines import build_plan
from nndeploy_cudnn.graph import graph_from_json
from nndeploy_cudnn.library import (
    DEVICE_JSON,
    DEVICE_PROPERTIES,
    CudnnError,
    Descriptor,
    Library,
    cudnn_library,
)

DRIVER = "libcuda.so.1"
_ELF_ABI_VERSION_AT, _ELF_FLAGS_AT = 8, 48
_FIRST_ABI_WITH_WIDE_FLAGS = 8  # CUDA 13: the architecture is in bits 8 to 15, before in bits 0 to 7


class Answerer:
    """Makes plans for one GPU."""

    def __init__(self, device_json: str) -> None:
        self._library: Library = cudnn_library()
        self._architecture = int(json.loads(device_json)["deviceVer"]) // 10
        self._device = Descriptor(self._library, DEVICE_PROPERTIES)
        self._device.set(DEVICE_JSON, "char", device_json.encode()).finalized()
        self.version = self._library.version

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """Returns the plan of a graph, or why there is none."""
        graph = graph_from_json(question["graph"])
        try:
            plan = build_plan(self._library, self._device, graph, tuple(question["modes"]))
        except CudnnError as err:
            return {"error": str(err)}
        if wrong := code_architectures(plan.text) - {self._architecture}:
            return {"error": f"cuDNN put code for sm_{min(wrong)} into a plan for sm_{self._architecture}"}
        return {"plan": plan.text, "workspace_bytes": plan.workspace_bytes, "is_compiled": plan.is_compiled}


def code_architectures(plan_text: str) -> set[int]:
    """Returns the architectures (89 for sm_89) of the device code inside a plan."""
    payload = json.loads(plan_text).get("engine", {}).get("payload", {})
    kernels = payload.get("kernels", ()) if isinstance(payload, dict) else ()
    return {_architecture(base64.b64decode(kernel["cubin"])) for kernel in kernels if kernel.get("cubin")}


def _architecture(cubin: bytes) -> int:
    (flags,) = struct.unpack_from("<I", cubin, _ELF_FLAGS_AT)
    shift = 8 if cubin[_ELF_ABI_VERSION_AT] >= _FIRST_ABI_WITH_WIDE_FLAGS else 0
    return int(flags >> shift) & 0xFF


def main() -> None:
    """Answers questions until the input ends, from memory laid out as in every other run where that can be done."""
    start_again_with_fixed_layout()
    is_done = False

    def work() -> None:
        nonlocal is_done
        is_done = True
        answer_all(is_fixed=is_layout_fixed())

    with contextlib.suppress(OSError, AttributeError):  # only the stand-in for the driver has the function
        ctypes.CDLL(DRIVER).nnd_with_fixed_guard(ctypes.CFUNCTYPE(None)(work))
    if not is_done:
        answer_all(is_fixed=False)


def answer_all(*, is_fixed: bool) -> None:
    """Answers questions until the input ends; `is_fixed`: equal questions get equal bytes in every process."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)  # native libraries print; the answers have the pipe for themselves

        def say(answer: dict[str, Any]) -> None:
            answers.write(json.dumps(answer) + "\n")
            answers.flush()

        try:
            answerer = Answerer(sys.stdin.readline())
        except (CudnnError, UnavailableError) as err:
            say({"error": one_line(str(err))})
            return
        say({"version": answerer.version, "is_fixed": is_fixed})
        for line in sys.stdin:
            say(answerer.answer(json.loads(line)))


if __name__ == "__main__":
    main()
