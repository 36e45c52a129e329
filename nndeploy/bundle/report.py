# SPDX-License-Identifier: Apache-2.0
"""The report of a compile: what each pass did, who took each node and why the others did not, measured errors.

It travels in the bundle as `report.json` (without wall times, so that the same input gives the same bytes) and is
what `inspect`, `diff` and the tables of `compile` print. Law: `report_from_json(report_to_json(r)) == r`.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from nndeploy.bundle.contents import Content
from nndeploy.bundle.place_reports import PlaceReport
from nndeploy.errors import BundleError
from nndeploy.values.amounts import counted


@dataclass(frozen=True, slots=True)
class NodeReport:
    """One node of the optimised model; `share` is its part of the model's compute, 0..1.

    `refusals` maps each backend that was asked before `backend` and did not take it to its reason.
    """

    name: str
    op: str
    backend: str
    submodel: str
    share: float
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    refusals: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SubmodelReport:
    """One submodel; `refusals` gives for each higher backend the reason it did not take it, in a line."""

    id: str
    backend: str
    num_nodes: int
    share: float
    refusals: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PassReport:
    """How many places a pass changed."""

    name: str
    count: int


@dataclass(frozen=True, slots=True)
class CheckReport:
    """One comparison with the reference; `scope` is "whole", "passes" or a submodel's id.

    The figures are over all elements of one output on one sample; `cosine` is None where it has no meaning. `rule` is
    what decided: "tolerance", "limits" (as near as engines that are right are to each other) or "rows" (results as
    sets); "absent" where nothing was compared, for what would run it is not here, "none" where something could have
    been. `note` says why, or what the rule found.
    """

    scope: str
    backend: str
    sample: int
    output: str
    ok: bool
    max_abs: float | None = None
    max_rel: float | None = None
    cosine: float | None = None
    note: str = ""
    rule: str = "tolerance"

    @property
    def was_made(self) -> bool:
        """Whether the values were compared; a note may say more of that."""
        return not self.note or self.max_abs is not None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A placement that was thought of: what was predicted for it, and what was measured.

    `shape_ms` are the medians of interleaved rounds at each of `Report.measured_shapes`, `median_ms` their geometric
    mean, by which candidates are compared; None where it was not measured. `predicted_ms` is of the first shape.
    """

    name: str
    median_ms: float | None
    chosen: bool
    shape_ms: tuple[float, ...] = ()
    predicted_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class TargetReport:
    """Which variant of a submodel of the portable chain a named box takes, with what it is known to have.

    `needs` is the library that this takes, "" where our own runtime is enough. `variant` is "" and `reason` says why
    where there is none. `compared` says whether this machine could run the variant and it was right.
    """

    target: str
    submodel: str
    variant: str = ""
    backend: str = ""
    needs: str = ""
    compared: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class BuildLog:
    """What a library said while it built a variant; without times, so that it is the same every time."""

    submodel: str
    variant: str
    text: str


@dataclass(frozen=True, slots=True)
class QuantisationTrial:
    """A way to quantise a model that was tried, and how far its outputs are from float32 on samples held out.

    `num_float` layers that could be quantised were left float. The figures are those of the worst output, `sqnr_db` the
    ratio of signal to quantisation noise over all its elements. `chosen`: it is what was built.
    """

    name: str
    num_float: int
    sqnr_db: float
    max_abs: float
    mean_abs: float
    output: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class QuantisedLayer:
    """A layer that can be quantised: whether it was, and why; `alone_db` is what the model has with it alone quantised.

    `alone_db` is None where nobody had to ask.
    """

    name: str
    op: str
    quantised: bool
    reason: str
    alone_db: float | None = None


@dataclass(frozen=True, slots=True)
class TaskMeasure:
    """How far the bundle's results agree with float32's in the terms of the task, on `count` of them; 1 is all.

    `kind`: "classes" and "texts", the share of equal ones; "cosine", of vectors, the mean; "boxes", the mean of what
    each has in common with the best one of the other side (intersection over union). `result` is an output, or what
    processors call the field of a pipeline.
    """

    result: str
    kind: str
    agreement: float
    count: int


@dataclass(frozen=True, slots=True)
class QuantisationReport:
    """How a float32 model was quantised before it was split.

    `to` is "int8" or "int4"; `form` "static", "dynamic" or "blocks"; `calibration` "" where none is needed. `least_db`
    is the limit that was asked for. `float_bytes` and `quantised_bytes` are those of the constants of both models.
    `bundle_db` is the ratio of signal to noise of the whole bundle against the float32 model, and `measures` what that
    means for the task. Milliseconds are of a
    call of the float32 model's bundle and of this one, None where nothing was measured.
    """

    to: str
    form: str
    calibration: str
    least_db: float
    num_calibration: int
    num_held_out: int
    float_bytes: int
    quantised_bytes: int
    trials: tuple[QuantisationTrial, ...]
    layers: tuple[QuantisedLayer, ...]
    bundle_db: float | None = None
    measures: tuple[TaskMeasure, ...] = ()
    float_ms: float | None = None
    quantised_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltReport:
    """What a compile did for one chain of submodels: what is told of the portable one and of each target's."""

    backends: tuple[str, ...]
    nodes: tuple[NodeReport, ...]
    submodels: tuple[SubmodelReport, ...]
    passes: tuple[PassReport, ...] = ()
    checks: tuple[CheckReport, ...] = ()
    dropped: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    nondeterministic: tuple[str, ...] = ()
    logs: tuple[BuildLog, ...] = ()

    def share_of(self, backend: str) -> float:
        """Returns the part of the compute, 0..1, that `backend` took."""
        return sum(s.share for s in self.submodels if s.backend == backend)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainReport(BuiltReport):
    """What a compile did for one target with GPUs.

    `idle_gpu` says why nothing of the model runs there, "" where something does. Such a chain is not in the bundle: the
    target runs the portable one. `ranges` are those of sizes that nobody declared, as texts; calls with others run on
    the portable chain.
    """

    id: str
    target: str
    idle_gpu: str = ""
    ranges: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(BuiltReport):
    """What `compile_model` returns.

    `seconds` (stage -> wall time), `bundle`, `contents` and `places` stay out of the bundle. What it inherits is of
    the portable chain; `target_chains` holds the others. `shapes` are those of the samples that were compared, by
    their number in the checks, and `samples` says whether they were given ("given") or made up ("made-up");
    `measured_shapes` those at which the candidates were measured; `targets` says what named boxes without a GPU, or
    whose GPUs are idle, take of the portable chain; `quantisation` how the model was quantised, None where it was
    not; `shapes_of_pipeline` the shapes of inputs, as `--shape` takes them, of which the pipeline fixed a size.
    """

    model: str
    objective: str
    shapes: tuple[str, ...] = ()
    samples: str = ""
    candidates: tuple[Candidate, ...] = ()
    measured_shapes: tuple[str, ...] = ()
    target_chains: tuple[ChainReport, ...] = ()
    targets: tuple[TargetReport, ...] = ()
    quantisation: QuantisationReport | None = None
    shapes_of_pipeline: Mapping[str, str] = field(default_factory=dict)
    bundle: str = ""
    bundle_bytes: int = 0
    contents: tuple[Content, ...] = ()
    places: tuple[PlaceReport, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def samples_text(self) -> str:
        """What the outputs were compared on, in words: "12 samples", "2 made-up inputs"."""
        number = len({check.sample for check in self.checks if check.scope == "whole"})
        return counted(number, {GIVEN: "sample", MADE_UP: "made-up input"}.get(self.samples, "input"))

    @property
    def used_chains(self) -> list[ChainReport]:
        """The chains for targets with GPUs that are in the bundle."""
        return [chain for chain in self.target_chains if not chain.idle_gpu]

    def shares(self) -> dict[str, dict[str, float]]:
        """Returns the part of the compute, 0..1, of each backend that takes any, by target: this machine is "".

        Where targets were named, those are judged, by what each is known to have, and not the machine that compiled.
        """
        found: dict[str, dict[str, float]] = {}
        share_of = {submodel.id: submodel.share for submodel in self.submodels}
        for chain in self.used_chains:
            found[chain.target] = {name: share for name in chain.backends if (share := chain.share_of(name))}
        for one in self.targets:
            shares = found.setdefault(one.target, {})
            shares[one.backend] = shares.get(one.backend, 0.0) + share_of.get(one.submodel, 0.0)
        return found or {"": {name: share for name in self.backends if (share := self.share_of(name))}}

    def all_warnings(self) -> tuple[str, ...]:
        """Returns what a user should know, of all chains, each once."""
        chains: tuple[BuiltReport, ...] = (self, *self.target_chains)
        return tuple(dict.fromkeys(line for chain in chains for line in (*chain.dropped, *chain.warnings)))

    def of_chain(self, chain: ChainReport) -> "Report":
        """Returns the report with what is said of a target's chain in the place of the portable one's."""
        of_the_chain = {part.name: getattr(chain, part.name) for part in dataclasses.fields(BuiltReport)}
        shared = {
            "passes": (*(p for p in self.passes if not p.name.startswith(TRANSFORMS)), *chain.passes),
            "checks": (*(check for check in self.checks if check.scope in WHOLE_SCOPES), *chain.checks),
        }
        return dataclasses.replace(self, **of_the_chain | shared, target_chains=())


GIVEN, MADE_UP = "given", "made-up"
"""What `Report.samples` may be; "" in the reports of older releases."""

TRANSFORMS = "transforms of "
"""Begins the name of the pass that stands for a backend's transforms."""

WHOLE_SCOPES = ("whole", "passes")
"""Scopes of checks that are no submodel's id."""

_PARTS = {
    "nodes": NodeReport, "submodels": SubmodelReport, "passes": PassReport, "checks": CheckReport,
    "candidates": Candidate, "logs": BuildLog, "target_chains": ChainReport,
    "targets": TargetReport, "contents": Content, "places": PlaceReport, "trials": QuantisationTrial,
    "layers": QuantisedLayer, "measures": TaskMeasure,
}  # fmt: skip
_PART = {"quantisation": QuantisationReport}
_ONLY_HERE = ("bundle", "bundle_bytes", "contents", "places", "seconds")


def report_to_json(report: Report) -> dict[str, Any]:
    """Returns the report as plain data."""
    return dataclasses.asdict(report)


def report_for_bundle(report: Report) -> dict[str, Any]:
    """Returns the report as plain data without what differs from run to run."""
    return {key: value for key, value in report_to_json(report).items() if key not in _ONLY_HERE}


def report_from_json(data: Mapping[str, Any]) -> Report:
    """Returns the report that `data` describes.

    Raises:
        BundleError: `data` is not a report.
    """
    try:
        report: Report = _part(Report, data)
        return report
    except (TypeError, AttributeError, ValueError) as err:
        raise BundleError(f"not a report: {err}", where="report.json") from err


def candidate_from_json(data: Mapping[str, Any]) -> Candidate:
    """Returns the candidate that plain data describe.

    Raises:
        TypeError, ValueError, AttributeError: they describe none.
    """
    candidate: Candidate = _part(Candidate, data)
    return candidate


def _part(kind: Any, item: Mapping[str, Any]) -> Any:
    """Returns a `kind` of plain data; a list of parts under a known name becomes a tuple of them."""
    part = kind(
        **{
            key: tuple(_part(_PARTS[key], each) for each in value) if key in _PARTS else _single(key, value)
            for key, value in item.items()
        }
    )
    _check_fields(part)
    return part


def _single(key: str, value: Any) -> Any:
    return _part(_PART[key], value) if key in _PART and value is not None else _tuples(value)


def _check_fields(part: Any) -> None:
    """Refuses a part with a value of another type than its field's: a report comes with a bundle, from anybody."""
    for field_ in dataclasses.fields(part):
        value = getattr(part, field_.name)
        if field_.name not in (*_PARTS, *_PART, *_ONLY_HERE) and not _fits(value, field_.type):
            raise ValueError(f"{type(part).__name__}.{field_.name} is {value!r:.40}")


def _fits(value: Any, kind: Any) -> bool:
    if kind in (str, bool, int):
        return type(value) is kind
    if kind in (float, float | None):
        return type(value) in (int, float) or (value is None and kind is not float)
    if kind in (tuple[str, ...], tuple[float, ...]):
        return type(value) is tuple and all(_fits(item, get_args(kind)[0]) for item in value)
    return isinstance(value, Mapping) and all(type(item) is str for pair in value.items() for item in pair)


def _tuples(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
