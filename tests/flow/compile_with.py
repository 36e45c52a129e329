# SPDX-License-Identifier: Apache-2.0
"""Compiles with options by their names, by the order of the backends where a test does not say another objective."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nndeploy
from nndeploy.jobs.workers import Workers


def compile_with(model: Any, out: Any, *, workers: Workers | None = None, **options: Any) -> nndeploy.Report:
    chosen = nndeploy.CompileOptions(**{"objective": "priority", **options})
    return nndeploy.compile_model(model, out, chosen, workers=workers)


_COMPILED: dict[tuple[bytes, str], bytes] = {}


def compiled_once(model: Path, out: Path, **options: Any) -> Path:
    """Writes the bundle of a model with these options, compiled when it is first asked for; returns its path."""
    key = (model.read_bytes(), f"{model.name} {sorted(options.items())}")
    if key not in _COMPILED:
        compile_with(model, out, **options)
        _COMPILED[key] = out.read_bytes()
    out.write_bytes(_COMPILED[key])
    return out


def native_compiler(folder: Path) -> Callable[[Any], Path]:
    """Returns what compiles a model for `native` alone, on one thread, into a folder, when it is first asked for."""
    made: dict[bytes, Path] = {}

    def of(model: Any) -> Path:
        key = model.read_bytes() if isinstance(model, Path) else model.SerializeToString()
        if key not in made:
            out = folder / f"{len(made)}.nnd"
            compile_with(model, out, backends=("native",), threads=1)
            made[key] = out
        return made[key]

    return of
