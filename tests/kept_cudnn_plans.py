# SPDX-License-Identifier: Apache-2.0
"""A planner that keeps what cuDNN answered from one run of the tests to the next, in build/cudnn-plans.

Equal questions about a GPU to the same code and library have the same answer, and most of what the tests of this
backend take is cuDNN compiling kernels for it.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import nndeploy_cudnn
from nndeploy_cudnn.planner import Planner

FOLDER = Path(__file__).resolve().parents[1] / "build" / "cudnn-plans"


@cache
def _code() -> str:
    """Returns a digest of all the code that asks the library."""
    texts = [path.read_bytes() for path in sorted(Path(nndeploy_cudnn.__file__).parent.rglob("*.py"))]
    return hashlib.sha256(b"\0".join(texts)).hexdigest()


class KeptPlanner(Planner):
    """Asks the library what it was never asked before."""

    def _ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        about = [_code(), self.version, self.is_fixed, str(self.gpu), question]
        path = FOLDER / f"{hashlib.sha256(json.dumps(about).encode()).hexdigest()}.json"
        if path.exists():
            return dict(json.loads(path.read_bytes()))
        answer = super()._ask(question)
        FOLDER.mkdir(parents=True, exist_ok=True)
        made = path.with_suffix(f".{os.getpid()}")
        made.write_text(json.dumps(answer), encoding="utf-8")
        made.replace(path)
        return answer
