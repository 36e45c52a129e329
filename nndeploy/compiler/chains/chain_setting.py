# SPDX-License-Identifier: Apache-2.0
"""What stays the same while one chain is cut, built and checked: the target, the samples, what counts as right.

Comes in: what a compile found out before it places anything. Goes out: `Setting`, which every step behind takes. Law:
nothing of it changes but what backends answered, which is kept so that each is asked once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import onnx_ir as ir

from nndeploy.bundle.manifest import Tolerance
from nndeploy.checking.check import SampleLimits
from nndeploy.checking.reference import Reference
from nndeploy.jobs.workers import Workers
from nndeploy.partition.derived_ranges import derived_ranges
from nndeploy.plugin.interface import BuildOptions, Support
from nndeploy.target.target import Target, has_bf16
from nndeploy.values.types import Value, ValueType

Events = Callable[[str, str], None]
"""(stage, what is being done): for progress."""

ConcreteShapes = Callable[[ir.Model], Mapping[str, tuple[int, ...]]]


@dataclass(frozen=True, slots=True)
class Whole:
    """The original model, and its outputs on the samples of a setting, of which there are some."""

    model: Callable[[], ir.Model]
    outputs: tuple[Mapping[str, Value], ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """What stays the same while one chain is made.

    The chain is cut and built for `target`; `num_at_once` backends are asked, or candidates built, at the same time.
    `tolerances` maps a precision and an element type to its tolerance; with `has_limits` what is outside a tolerance is
    judged by how far right engines differ. `confirm` is called when a backend contradicts the reference.
    `prefix` begins the ids of its submodels. `made_up` says the shapes of inputs that nobody gave, where the model
    leaves sizes open; else "". `whole` is what a piece that has all of the model is held
    against. `as_taken` are backends whose own rewrites are not made. With `for_rate` the chain is for many calls a
    second, not for the least time of one. `answers` keeps what backends said of graphs: each is asked once.
    """

    workers: Workers
    target: Target
    build_options: BuildOptions
    reference: Reference
    samples: tuple[Mapping[str, Value], ...]
    incomparable: Mapping[str, str]
    tolerances: Mapping[str, Mapping[str, Tolerance]]
    shapes_of: ConcreteShapes
    events: Events
    num_at_once: int = 1
    made_up: str = ""
    prefix: str = ""
    has_limits: bool = True
    confirm: Callable[[], None] = lambda: None
    whole: Whole | None = None
    as_taken: frozenset[str] = frozenset()
    for_rate: bool = False
    answers: dict[tuple[str, Target, str], list[Support]] = field(default_factory=dict)

    def whole_of(self, outputs: Sequence[str]) -> Whole | None:
        """Returns the original model where a piece with these outputs gives all of its outputs, else None."""
        is_whole = self.whole is not None and set(outputs) == set(self.whole.outputs[0])
        return self.whole if is_whole else None

    def limits(
        self,
        model: Callable[[], ir.Model],
        samples: Sequence[Mapping[str, Value]],
        want: Sequence[Mapping[str, Value]],
        types: Mapping[str, ValueType],
    ) -> SampleLimits | None:
        """Returns what tells how far right engines differ on these samples; None where the user said how far."""
        if not self.has_limits:
            return None
        return cache(lambda: self.reference.limits(model(), samples, want, types, self.tolerances["fp32"]))


def options_for(setting: Setting, model: ir.Model) -> BuildOptions:
    """Returns the build options for the target, with the ranges of sizes inside `model`, which GPUs' backends need."""
    options = options_on(setting.target, setting.build_options)
    if not setting.target.gpus or not options.ranges:
        return options
    return replace(options, ranges={**derived_ranges(model, options.ranges), **options.ranges})


def options_on(target: Target, options: BuildOptions) -> BuildOptions:
    """Returns the build options in a precision that the target has."""
    return options if has_bf16(target) else replace(options, precision="fp32")
