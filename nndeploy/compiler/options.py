# SPDX-License-Identifier: Apache-2.0
"""What a user may ask of a compile, as one frozen value; the command line, a TOML file and Python all make it."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Protocol

from nndeploy.bundle.manifest import ImageInput, Manifest
from nndeploy.compiler import option_texts
from nndeploy.errors import UsageError, did_you_mean
from nndeploy.options.described import described
from nndeploy.options.texts import bytes_in, library_paths, share_in
from nndeploy.plugin.interface import CALIBRATIONS, PRECISIONS
from nndeploy.target.place_limits import PlaceLimit, places_in, places_text, why_no_places
from nndeploy.target.target import Target
from nndeploy.values.types import Value

INITIALIZER_INPUTS = ("auto", "inputs", "constants")
OBJECTIVES = ("latency", "throughput", "priority")
"""What is to be fast: a call, items with several at once; or the order of tiers as it is. The first is the default."""
OUT_OF_RANGE = ("error", "clamp")
"""What an index out of range is: an error of that input, or the nearest one. The first is the default."""
QUANTISE = ("int8", "int4")
"""To what a float32 model may be quantised: weights and activations, or weights alone."""
LEAST_SQNR_DB = 20.0
"""Outputs are then a tenth of their root mean square from those of the float32 model; classes hardly change."""
MAX_CACHE_BUFFER = 1 << 30

_QUANTISATION = "Quantisation"
_INPUTS, _PLACEMENT, _TARGETS = "Model and inputs", "Backends and placement", "Targets"
_CHECKS, _OUTPUT, _LIMITS = "Checks and gates", "Output", "Limits"


class Carried(Protocol):
    """A pipeline for the bundle to carry, as `nndeploy.stream.pipeline.bundled_pipeline` reads it."""

    @property
    def members(self) -> Mapping[str, bytes]:
        """The members that hold it."""

    def check(self, manifest: Manifest, rows: Mapping[str, int]) -> None:
        """Checks it against the inputs, outputs and ranges of the bundle, and the rows that its inputs choose from.

        Raises:
            DataError: it does not fit.
        """

    def input_shapes(
        self, inputs: Sequence[str], optional: Set[str], outputs: Sequence[str]
    ) -> Mapping[str, tuple[int | None, ...]]:
        """Returns the sizes that it always makes of the bundle's inputs, None where they vary.

        `optional` are those of the inputs that a call may leave out.

        Raises:
            DataError: it does not fit these names.
        """

    def last_positions(self, manifest: Manifest) -> frozenset[str]:
        """Returns the outputs of the bundle of which it reads the last position alone."""

    def results(self, outputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns what it makes of the outputs of one call, by what processors call it."""


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """All options of a compile; what each means is its help, what follows is what Python gives.

    `shapes` maps an input or a symbol to its sizes, as text or a sequence (`nndeploy.frontend.shapes`). `samples` are
    {input name: array} each; without them inputs are generated. `pins` are (glob of node names, backend). `require`
    maps a backend to a share of compute, 0..1; `max_fallback` is such a share too, of backends of tier 4 and 5
    together. `cache_buffer` is in bytes. `backends` None means every installed one by tier.
    """

    shapes: Mapping[str, Any] = described(
        dict,
        "Input sizes or ranges, e.g. x=1..8,3,224,224:4,3,224,224 (range:optimum), x=1,3,224..1280:32,640 (steps of "
        "32), N=1..8.",
        section=_INPUTS, flags=("--shape",), metavar="INPUT=SIZES", from_texts=option_texts.shapes,
    )  # fmt: skip
    min_shapes: str = described("", "Minimum input sizes, in trtexec syntax.", section=_INPUTS, metavar="IN:1x3x..")
    opt_shapes: str = described("", "Input sizes to optimise for.", section=_INPUTS, metavar="IN:4x3x..")
    max_shapes: str = described("", "Maximum input sizes.", section=_INPUTS, metavar="IN:8x3x..")
    samples: Sequence[Mapping[str, Value]] | None = described(
        None, "Folder of .npz files: sample inputs for comparison, benchmarking and calibration.",
        section=_INPUTS, is_path=True, from_text=option_texts.samples,
    )  # fmt: skip
    image_input: ImageInput | None = described(
        None, "TOML file that describes how to preprocess an image into the input.",
        section=_INPUTS, flags=("--image",), is_path=True, from_text=option_texts.image_input,
    )  # fmt: skip
    pipeline: Carried | None = described(
        None, "Pipeline to embed in the bundle, for `run`. Files that it references, such as labels, are embedded too.",
        section=_INPUTS, metavar="FILE.toml", is_path=True, from_text=option_texts.pipeline,
    )  # fmt: skip
    custom_op_libraries: tuple[str, ...] = described(
        (), "Shared library of custom operators (repeatable). Its code is executed.",
        section=_INPUTS, flags=("--custom-ops",), is_path=True, from_texts=library_paths,
    )  # fmt: skip
    initializer_inputs: str = described(
        INITIALIZER_INPUTS[0],
        "How to treat initializers that the model also lists as inputs: as optional inputs or as constants. `auto`: "
        "optional inputs, unless the model lists all its weights.",
        section=_INPUTS, choices=INITIALIZER_INPUTS,
    )  # fmt: skip
    optimise: bool = described(
        True, "Run the backend-independent graph optimisation passes.",
        section=_INPUTS, flags=("--optimise/--no-optimise",),
    )  # fmt: skip
    out_of_range: str = described(
        OUT_OF_RANGE[0],
        "How Gather, Scatter and lookups treat an out-of-range index: as an error, or by clamping it to the nearest "
        "valid index.",
        section=_INPUTS, choices=OUT_OF_RANGE,
    )  # fmt: skip
    quantise: str | None = described(
        None,
        "Quantise a float32 model: `int8` quantises weights and activations, `int4` only the weights of matrix "
        "products. Requires --samples. Operators that would lose too much accuracy stay float.",
        section=_QUANTISATION, choices=QUANTISE,
    )  # fmt: skip
    calibration: str | None = described(
        None,
        "How activation ranges are derived from the samples: minimum and maximum, a percentile, or least information "
        "loss (entropy). Default: try all and keep the most accurate.",
        section=_QUANTISATION, choices=CALIBRATIONS,
    )  # fmt: skip
    quantise_tolerance: float | None = described(
        None,
        "Minimum signal-to-noise ratio of every output against float32, in dB. At 20 (default) the error is 10% of "
        "the output, at 40 it is 1%.",
        section=_QUANTISATION, metavar="DB",
    )  # fmt: skip
    backends: tuple[str, ...] | None = described(
        None,
        "Backends in order of priority, separated by commas. Default: all installed backends, by tier.",
        section=_PLACEMENT, metavar="NAME,NAME,..", from_text=option_texts.backends,
    )  # fmt: skip
    without: tuple[str, ...] = described(
        (), "Exclude a backend (repeatable).", section=_PLACEMENT, metavar="BACKEND", from_texts=option_texts.backends
    )
    pins: tuple[tuple[str, str], ...] = described(
        (), "Assign the nodes whose names match GLOB to a backend (repeatable).",
        section=_PLACEMENT, flags=("--pin",), metavar="GLOB=BACKEND", from_texts=option_texts.pins,
    )  # fmt: skip
    objective: str = described(
        OBJECTIVES[0],
        "What candidate placements are benchmarked for; `priority` uses the backend order without benchmarking.",
        section=_PLACEMENT, choices=OBJECTIVES,
    )  # fmt: skip
    precision: str = described(
        PRECISIONS[0], "Lowest precision allowed for float32 computations, on targets that support it.",
        section=_PLACEMENT, choices=PRECISIONS,
    )  # fmt: skip
    threads: int | None = described(
        None, "Number of threads that each backend is built for and runs with. Default: the library's own default.",
        section=_PLACEMENT, least=1,
    )  # fmt: skip
    cache_buffer: int | None = described(
        None,
        "Size of the sliding-window buffer of fused convolutions, e.g. 256KiB. Default: derived from each target's "
        "CPU caches.",
        section=_PLACEMENT, metavar="SIZE", from_text=bytes_in("--cache-buffer"),
    )  # fmt: skip
    pace: bool = described(
        False,
        "Support pacing: allow `nndeploy run --pace` to sleep between the operators of this bundle.",
        section=_PLACEMENT,
    )
    decisions: Path | None = described(
        None, "Reuse the placement decisions in FILE; create it if it does not exist.",
        section=_PLACEMENT, metavar="FILE", is_path=True, from_text=Path,
    )  # fmt: skip
    targets: tuple[Target, ...] = described(
        (),
        "Target to compile for, by name (see `nndeploy targets`) or target file (repeatable). Default: this machine.",
        section=_TARGETS, flags=("--target",), metavar="TARGET",
        from_texts=option_texts.targets, rooted=option_texts.rooted_target,
    )  # fmt: skip
    places: tuple[PlaceLimit, ...] = described(
        (),
        "Devices to split the model across, in order, with a memory limit each: cuda:0=4GiB,cuda:1=4GiB,cpu. cpu:0 "
        "and cpu:1 are pools of cores. Default: as in the target file, else one device.",
        section=_TARGETS, flags=("--place",), metavar="PLACE=SIZE,..", from_text=places_in,
    )  # fmt: skip
    keep_fallback: bool = described(
        True, "Also build each submodel for the next backend, for machines that lack the first.",
        section=_TARGETS, flags=("--fallback/--no-fallback",),
    )  # fmt: skip
    rtol: float | None = described(
        None,
        "Relative tolerance of all float comparisons. Default: by data type and by how far correct engines differ.",
        section=_CHECKS,
    )
    atol: float | None = described(
        None, "Absolute tolerance of all float comparisons. Default: as for --rtol.", section=_CHECKS
    )
    require: Mapping[str, float] = described(
        dict, "Fail unless a backend takes at least this share of the compute (repeatable).",
        section=_CHECKS, metavar="BACKEND=95%", from_texts=option_texts.requirements,
    )  # fmt: skip
    max_fallback: float | None = described(
        None, "Fail if fallback backends take more than this share of the compute. Default: no limit.",
        section=_CHECKS, metavar="5%", from_text=share_in("--max-fallback"),
    )  # fmt: skip
    strict_targets: bool = described(
        False, "Fail if nothing of the model runs on the GPU of a --target that has one.",
        section=_CHECKS, flags=("--strict-targets/--no-strict-targets",),
    )  # fmt: skip
    max_size: int | None = described(
        None, "Fail if the bundle is larger than this, e.g. 20MB. Default: no limit.",
        section=_CHECKS, metavar="SIZE", from_text=bytes_in("--max-size"),
    )  # fmt: skip
    num_goldens: int = described(
        1,
        "Number of goldens to store in the bundle: sample inputs with their reference outputs, which `nndeploy "
        "verify` re-runs.",
        section=_CHECKS, flags=("--goldens",), least=0,
    )  # fmt: skip
    allow_uncompared: bool = described(
        False,
        "Write the bundle even if no input could be generated to compare it with the original model.",
        section=_CHECKS,
    )
    dry_run: bool = described(
        False, "Show which backend would take each node and why, without building anything.", section=_OUTPUT
    )

    def __post_init__(self) -> None:
        for name in ("backends", "without", "pins", "targets", "custom_op_libraries"):
            if isinstance(getattr(self, name), str):
                raise UsageError(f"{name} must be a tuple, not the string {getattr(self, name)!r:.80}")
        if self.places and (reason := why_no_places(self.places)):
            raise UsageError(f"places: {reason}")
        if self.objective not in OBJECTIVES:
            raise UsageError(f"unknown objective {self.objective!r}", hint=did_you_mean(self.objective, OBJECTIVES))
        if self.precision not in PRECISIONS:
            raise UsageError(f"unknown precision {self.precision!r}", hint=did_you_mean(self.precision, PRECISIONS))
        if self.out_of_range not in OUT_OF_RANGE:
            hint = did_you_mean(self.out_of_range, OUT_OF_RANGE)
            raise UsageError(f"unknown treatment of indices out of range {self.out_of_range!r}", hint=hint)
        self._check_quantisation()
        if self.initializer_inputs not in INITIALIZER_INPUTS:
            hint = did_you_mean(self.initializer_inputs, INITIALIZER_INPUTS)
            raise UsageError(f"unknown initializer_inputs {self.initializer_inputs!r}", hint=hint)
        if self.threads is not None and self.threads < 1:
            raise UsageError(f"threads must be at least 1, not {self.threads}")
        if self.cache_buffer is not None and not 0 < self.cache_buffer <= MAX_CACHE_BUFFER:
            raise UsageError(f"the window buffer must be 1 byte to 1 GiB, not {self.cache_buffer} bytes")
        for name, value in (("rtol", self.rtol), ("atol", self.atol)):
            if value is not None and not 0 <= value < float("inf"):
                raise UsageError(f"{name} must be a number from 0 up, not {value}")
        for name, share in (*self.require.items(), ("max_fallback", self.max_fallback)):
            if share is not None and not 0 <= share <= 1:
                raise UsageError(f"a share of compute is between 0% and 100%, not {share:.0%} ({name})")

    def _check_quantisation(self) -> None:
        if self.quantise is None:
            if self.calibration is not None or self.quantise_tolerance is not None:
                raise UsageError("--calibration and --quantise-tolerance are for --quantise")
            return
        if self.quantise not in QUANTISE:
            raise UsageError(f"cannot quantise to {self.quantise!r}", hint=did_you_mean(self.quantise, QUANTISE))
        if self.calibration is not None and self.calibration not in CALIBRATIONS:
            hint = did_you_mean(self.calibration, CALIBRATIONS)
            raise UsageError(f"unknown calibration {self.calibration!r}", hint=hint)
        if self.calibration is not None and self.quantise != "int8":
            raise UsageError("--calibration is for --quantise int8: int4 leaves activations as they are")
        if self.quantise_tolerance is not None and not 0 < self.quantise_tolerance < float("inf"):
            raise UsageError(f"quantise_tolerance must be a ratio above 0 dB, not {self.quantise_tolerance}")


@dataclass(frozen=True, slots=True)
class CompileLimits:
    """What a compile in processes of its own may take: time in seconds, memory in bytes, None for the usual."""

    jobs: int | None = described(
        None, "Number of parallel builds. Default: the number of cores.", section=_LIMITS, least=1
    )
    time_limit: float = described(
        600.0, "Time limit of each build or check, in seconds.", section=_LIMITS, least=0, is_above=True
    )
    total_time_limit: float = described(
        3600.0, "Time limit of the whole compile, in seconds.", section=_LIMITS, least=0, is_above=True
    )
    memory_limit: int | None = described(
        None, "Memory limit of the whole compile, e.g. 8GiB. Default: three quarters of this machine's memory.",
        section=_LIMITS, metavar="SIZE", from_text=option_texts.memory_in("--memory-limit"),
    )  # fmt: skip
    sandbox: bool = described(
        True,
        "Run the compile unsandboxed, with access to all your files and the network. Needed for models whose files "
        "lie outside their folder and for plugins that use the network. A model that exploits a library bug can then "
        "reach your files and keys.",
        section=_LIMITS, flags=("--no-sandbox",),
    )  # fmt: skip

    def __post_init__(self) -> None:
        for name in ("time_limit", "total_time_limit"):
            if not 0 < (seconds := getattr(self, name)) < float("inf"):
                raise UsageError(f"{name} must be a number of seconds above 0, not {seconds}")
        if self.jobs is not None and self.jobs < 1:
            raise UsageError(f"jobs must be at least 1, not {self.jobs}")


READ_BY_CHILD = frozenset({"samples", "pipeline"})
"""Options whose texts take libraries or arrays to read: the process that compiles does it, not the command."""
_OF_THIS_COMPILE = frozenset({
    "dry_run", "allow_uncompared", "custom_op_libraries", "image_input", "targets", "shapes", "min_shapes",
    "opt_shapes", "max_shapes", "pipeline", "samples", "decisions", "max_size",
    "strict_targets",
})  # fmt: skip
"""Options that do not shape the bundle, or that stand in it in another form."""


def options_to_json(options: CompileOptions) -> dict[str, Any]:
    """Returns what of the options shapes the bundle, as plain data for its provenance; no paths of this machine."""
    names = [field.name for field in fields(options) if field.name not in _OF_THIS_COMPILE]
    data = {name: getattr(options, name) for name in names}
    if not options.pace:
        del data["pace"]  # as bundles were before there was pacing
    if options.initializer_inputs == INITIALIZER_INPUTS[0]:
        del data["initializer_inputs"]
    if options.quantise is None:
        for name in ("quantise", "calibration", "quantise_tolerance"):
            del data[name]
    if options.places:
        data["places"] = places_text(options.places)
    else:
        del data["places"]
    data["targets"] = [target.name for target in options.targets]
    data["shapes"] = {name: str(spec) for name, spec in options.shapes.items()}
    data["num_custom_op_libraries"] = len(options.custom_op_libraries)
    return data


_JUDGES = frozenset({"require", "max_fallback", "num_goldens"})
"""Options that judge a bundle or keep samples of it, and have no part in a placement."""


def options_that_decide(options: CompileOptions) -> dict[str, Any]:
    """Returns what of the options a placement depends on, as plain data: gates may change and decisions stay."""
    usual = CompileOptions()
    return options_to_json(replace(options, **{name: getattr(usual, name) for name in _JUDGES}))
