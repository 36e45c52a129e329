# SPDX-License-Identifier: Apache-2.0
"""The child: `python -m gpucheck.child MODULE OPTIONS ANSWERS [ITEM ...]` runs items and writes a JSON line an event.

    {"items": [...]}    without items on the command line: what there is, and the child ends
    {"begin": item}     {"row": ...}     {"end": item}     {"again": true}: start a new process for the rest

The lines go to a file of their own, because libraries print. After an error of the CUDA driver the process is of no
use any more: every later call would give the same error.
"""

import ctypes
import importlib
import json
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from gpucheck.options import Options, options_from_json
from gpucheck.rows import FAILED, row_of, row_to_json

MAX_REASON = 400
_PR_SET_PDEATHSIG = 1


def main(arguments: Sequence[str]) -> None:
    """Runs what the command line says."""
    end_with_parent()
    module_name, options_text, answers_path, *items = arguments
    options = options_from_json(options_text)
    with open(answers_path, "a", encoding="utf-8", buffering=1) as answers:  # noqa: PTH123 - line by line

        def say(event: dict[str, Any]) -> None:
            answers.write(json.dumps(event) + "\n")

        module = importlib.import_module(module_name)
        if not items:
            say({"items": list(module.items(options))})
            return
        for item in items:
            say({"begin": item})
            if not _ran(module, item, options, say):
                say({"end": item})
                say({"again": True})
                return
            say({"end": item})


def end_with_parent() -> None:
    """Makes the kernel kill this process when the thread that started it ends: a killed check leaves no GPU busy.

    Source: prctl(2), PR_SET_PDEATHSIG.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _ran(module: Any, item: str, options: Options, say: Any) -> bool:
    """Runs one item; returns whether this process may go on."""
    try:
        for row in module.run(item, options):
            say({"row": row_to_json(row)})
    except Exception as err:
        traceback.print_exc()
        say({"row": row_to_json(row_of(module.STAGE, item, FAILED, reason_of(err)))})
        return not is_of_the_driver(err)
    return True


def reason_of(error: BaseException) -> str:
    """Returns an error in a line: its kind and its words."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:MAX_REASON]


def is_of_the_driver(error: BaseException | None) -> bool:
    """Returns whether an error, or what caused it, says that the GPU's context is lost."""
    while error is not None:
        if type(error).__name__ in ("CudaError", "CUDARuntimeError", "AcceleratorError"):
            return True
        error = error.__cause__ or error.__context__
    return False


if __name__ == "__main__":
    main(sys.argv[1:])
