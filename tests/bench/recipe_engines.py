# SPDX-License-Identifier: Apache-2.0
"""Recipes of `nndeploy new` as engines of a race: the bundle is loaded once, a pass streams all files through it."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from interleaved import Inputs, Ready
from recipe_packages import lines_of, on_cores

from nndeploy.runtime.program import load_bundle
from nndeploy.stream.items import Outcome
from nndeploy.stream.run.open_run import Ends, open_run, opened_models
from nndeploy.stream.run.options import RunOptions
from nndeploy.stream.stopping import Stop

_STACK = ExitStack()


def recipe(inputs: Inputs, name: str, bundle: str, files: list[str], cores: int) -> Ready:
    """The stream of a bundle that carries its pipeline, with the defaults of `nndeploy run` on so many cores."""
    del inputs
    on_cores(cores)
    options = RunOptions(cache_dir="")
    loaded = opened_models(_STACK, Path(bundle), None, options, load_bundle)

    def call() -> list[Any]:
        outcomes: list[Outcome] = []
        ends = Ends(None, None, Stop())  # type: ignore[arg-type]  # neither standard input nor output is used
        open_run(loaded, files, None, options, ends).run(outcomes.append)
        return [_RESULTS[name](one.outputs or {}) for one in outcomes]

    return Ready(call, lines_of)


def _boxes(outputs: Mapping[str, Any]) -> list[Any]:
    return [[name, *map(float, box)] for name, box in zip(outputs["labels"], outputs["boxes"], strict=True)]


_RESULTS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = MappingProxyType(
    {
        "vad": lambda outputs: np.round(outputs["segments"], 6).tolist(),
        "detect": _boxes,
        "detect-as-nudenet": _boxes,
        "embed": lambda outputs: np.reshape(outputs["embedding"], -1).tolist(),
        "ocr": lambda outputs: list(outputs["text"]),
        "rerank": lambda outputs: float(outputs["score"][0]),
        "file-type": lambda outputs: str(outputs["labels"][0]),
    }
)
