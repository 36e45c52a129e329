# SPDX-License-Identifier: Apache-2.0
"""Compiles with options by their names."""

from typing import Any

import nndeploy
from nndeploy.jobs.workers import Workers


def compile_with(model: Any, out: Any, *, workers: Workers | None = None, **options: Any) -> nndeploy.Report:
    return nndeploy.compile_model(model, out, nndeploy.CompileOptions(**options), workers=workers)
