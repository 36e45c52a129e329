# SPDX-License-Identifier: Apache-2.0
"""The fields of `CompileOptions` as keywords of `compile_model`, for type checkers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from nndeploy.bundle.manifest import ImageInput
from nndeploy.compiler.options import Carried
from nndeploy.target.place_limits import PlaceLimit
from nndeploy.target.target import Target
from nndeploy.values.types import Value


class CompileKeywords(TypedDict, total=False):
    """Each means what the field of `CompileOptions` of its name does."""

    shapes: Mapping[str, Any]
    min_shapes: str
    opt_shapes: str
    max_shapes: str
    samples: Sequence[Mapping[str, Value]] | None
    image_input: ImageInput | None
    pipeline: Carried | None
    custom_op_libraries: tuple[str, ...]
    initializer_inputs: str
    optimise: bool
    out_of_range: str
    quantise: str | None
    calibration: str | None
    quantise_tolerance: float | None
    backends: tuple[str, ...] | None
    without: tuple[str, ...]
    pins: tuple[tuple[str, str], ...]
    objective: str
    precision: str
    threads: int | None
    cache_buffer: int | None
    pace: bool
    decisions: Path | None
    targets: tuple[Target, ...]
    places: tuple[PlaceLimit, ...]
    keep_fallback: bool
    rtol: float | None
    atol: float | None
    require: Mapping[str, float]
    max_fallback: float | None
    strict_targets: bool
    max_size: int | None
    num_goldens: int
    allow_uncompared: bool
    dry_run: bool
