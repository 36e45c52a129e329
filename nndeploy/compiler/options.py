# SPDX-License-Identifier: Apache-2.0
"""What a user may ask of a compile, as one frozen value; the command line, a TOML file and Python all make it."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from nndeploy.bundle.manifest import ImageInput, Manifest
from nndeploy.errors import UsageError, did_you_mean
from nndeploy.plugin.interface import PRECISIONS
from nndeploy.target.target import Target

OBJECTIVES = ("latency", "throughput", "priority")
"""What is to be fast: a call, items with several at once; or the order of tiers as it is. The first is the default."""
MAX_CACHE_BUFFER = 1 << 30


class Carried(Protocol):
    """A pipeline for the bundle to carry, as `nndeploy.stream.pipeline.bundled_pipeline` reads it."""

    @property
    def members(self) -> Mapping[str, bytes]:
        """The members that hold it."""

    def check(self, manifest: Manifest) -> None:
        """Checks it against the inputs, outputs and ranges of the bundle.

        Raises:
            DataError: it does not fit.
        """


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """All options of a compile.

    `backends` None means every installed one by tier. `pins` are (glob of node names, backend). `require` maps a
    backend to the least share of compute, 0..1, that it must take; `max_fallback` is the most that backends of tier 4
    and 5 may take. `rtol` and `atol` replace the tolerance of every floating element type. `num_goldens` samples
    travel in the bundle. `keep_fallback` adds to each submodel a variant of the next backend that takes it.
    `cache_buffer` is the capacity in bytes of the sliding-window buffer on every target, in place of the target's own.
    `pipeline` are the members that carry a default pipeline (`nndeploy.stream.pipeline.bundled_pipeline`).
    `precision` is the least in which backends may compute float32, on targets that have it. With `pace` runs of the
    bundle can be paced. With `allow_uncompared` a bundle is written of which nothing could be compared.
    """

    backends: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    pins: tuple[tuple[str, str], ...] = ()
    targets: tuple[Target, ...] = ()
    objective: str = OBJECTIVES[0]
    threads: int | None = None
    cache_buffer: int | None = None
    precision: str = "fp32"
    shapes: Mapping[str, Any] = field(default_factory=dict)
    custom_op_libraries: tuple[str, ...] = ()
    image_input: ImageInput | None = None
    pipeline: Mapping[str, bytes] = field(default_factory=dict)
    rtol: float | None = None
    atol: float | None = None
    require: Mapping[str, float] = field(default_factory=dict)
    max_fallback: float | None = None
    num_goldens: int = 1
    keep_fallback: bool = True
    optimise: bool = True
    pace: bool = False
    allow_uncompared: bool = False
    dry_run: bool = False

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise UsageError(f"unknown objective {self.objective!r}", hint=did_you_mean(self.objective, OBJECTIVES))
        if self.precision not in PRECISIONS:
            raise UsageError(f"unknown precision {self.precision!r}", hint=did_you_mean(self.precision, PRECISIONS))
        if self.threads is not None and self.threads < 1:
            raise UsageError(f"threads must be at least 1, not {self.threads}")
        if self.cache_buffer is not None and not 0 < self.cache_buffer <= MAX_CACHE_BUFFER:
            raise UsageError(f"a window buffer has 1 byte to 1 GiB, not {self.cache_buffer} bytes")
        for name, value in (("rtol", self.rtol), ("atol", self.atol)):
            if value is not None and not 0 <= value < float("inf"):
                raise UsageError(f"{name} must be a number from 0 up, not {value}")
        for name, share in (*self.require.items(), ("max_fallback", self.max_fallback)):
            if share is not None and not 0 <= share <= 1:
                raise UsageError(f"a share of compute is between 0% and 100%, not {share:.0%} ({name})")


def options_to_json(options: CompileOptions) -> dict[str, Any]:
    """Returns what of the options shapes the bundle, as plain data for its provenance; no paths of this machine."""
    data = dataclasses.asdict(options)
    if not options.pace:
        del data["pace"]  # as bundles were before there was pacing
    for only_here in (
        "dry_run",
        "allow_uncompared",
        "custom_op_libraries",
        "image_input",
        "targets",
        "shapes",
        "pipeline",
    ):
        del data[only_here]
    data["targets"] = [target.name for target in options.targets]
    data["shapes"] = {name: str(spec) for name, spec in options.shapes.items()}
    data["num_custom_op_libraries"] = len(options.custom_op_libraries)
    return data
