# SPDX-License-Identifier: Apache-2.0
"""What the compile half asks of a backend's library; each function here runs where the workers decide.

What a plugin hands back is checked here, once for all plugins. A library's exception becomes a `BuildRefusedError`
with one line: normal work for the caller, who moves the nodes to the next backend.
"""

import re
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from nndeploy.errors import BuildRefusedError, NndeployError, UnavailableError, full_disk, lacks_space, one_line
from nndeploy.files.file_content import letting_go_of_pages
from nndeploy.files.onnx_external_data import named_files
from nndeploy.jobs.measuring import Call, Measured, raced, raced_apart
from nndeploy.jobs.temporary import temporary_folder
from nndeploy.plugin.interface import (
    Artifact,
    BuildOptions,
    MapsWeights,
    OpenOptions,
    Quantiser,
    QuantiseRecipe,
    Ranges,
    ReferenceEngine,
    Session,
    Support,
    TellsCode,
)
from nndeploy.plugin.registry import backend
from nndeploy.runtime.chain import on_host
from nndeploy.runtime.placed_chain import Place
from nndeploy.runtime.places import place_for
from nndeploy.target.target import Target
from nndeploy.values.types import Value, shapes_text

if TYPE_CHECKING:
    import onnx_ir as ir

    from nndeploy.runtime.program import Program

T = TypeVar("T")

_TOO_LARGE = "the model's weights are more than 2 GiB, which this backend does not take"

MOST_TOGETHER = 128 << 20
"""Bytes of bundles that are raced in memory together; loading smaller ones is quick, and turns are fairer."""
MAX_REASON = 300
_FILE_NAME = re.compile(r"(?!\.)[a-z0-9_.-]+(/(?!\.)[a-z0-9_.-]+)?")

Sample = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Built:
    """An artifact, and what it gave on the samples; `not_run` says why it was not run here, "" when it was."""

    artifact: Artifact
    outputs: tuple[dict[str, Value], ...] = ()
    not_run: str = ""


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """How to run or time a bundle: `seconds` long, in `inflight` threads at once, each call with `threads` inside.

    `device` is as for `load_bundle`.
    """

    seconds: float = 0.3
    inflight: int = 1
    threads: int | None = None
    custom_op_libraries: tuple[str, ...] = field(default=())
    device: str = "cpu"


def reason_of(error: BaseException) -> str:
    """Returns an exception's text as one short line."""
    text = one_line(str(error)) or type(error).__name__
    return text if len(text) <= MAX_REASON else text[: MAX_REASON - 3] + "..."


def supports(name: str, model: "ir.Model", target: Target, options: BuildOptions) -> list[Support]:
    """Returns a backend's answer for each node of the main graph: that of a backend that fails is no.

    Raises:
        UnavailableError: the plugin's answer does not fit the model.
    """
    try:
        model = _as_read_by(name, model)
        with letting_go_of_pages():
            said = _refused_if_failing(lambda: backend(name).supports(model, target, options))
    except BuildRefusedError as err:
        return [Support(False, str(err) or "it failed")] * len(model.graph)
    if len(said) != len(model.graph):
        raise UnavailableError(f"backend {name!r} answered for {len(said)} of {len(model.graph)} nodes")
    return [answer if answer.ok or answer.reason else Support(False, "no reason given") for answer in said]


def build(name: str, submodel: "ir.Model", target: Target, options: BuildOptions, samples: Sequence[Sample]) -> Built:
    """Returns the artifact of a submodel and its outputs on `samples`, one thread each.

    Raises:
        BuildRefusedError: the library would not build it, or failed on a sample.
    """
    submodel = _as_read_by(name, submodel)
    with temporary_folder("build") as workdir, letting_go_of_pages():
        artifact = _refused_if_failing(lambda: backend(name).build(submodel, target, options, workdir))
    artifact = _checked_artifact(name, artifact, options)
    place, unmet_here = place_for(artifact.requires, backend(name).device_kind)
    not_run = unmet_here or _why_not_run(name, target)
    if not_run or not samples:
        return Built(artifact, (), not_run)
    return Built(artifact, tuple(_refused_if_failing(lambda: _run(name, artifact, options, samples, place))))


def evaluate(name: str, model: bytes, samples: Sequence[Sample], options: BuildOptions) -> list[dict[str, Value]]:
    """Returns a model's outputs on each sample as the engine of backend `name` computes them, unoptimised.

    Raises:
        BuildRefusedError: this engine cannot.
    """
    engine = backend(name)
    if not isinstance(engine, ReferenceEngine):
        raise BuildRefusedError(f"{name} is not a reference engine")
    if not isinstance(engine, MapsWeights):
        model = _embedded_bytes(model)
    return _refused_if_failing(lambda: engine.evaluate(model, samples, options))


def calibrate(name: str, model: bytes, samples: Sequence[Sample], method: str) -> Ranges:
    """Returns the range of each float tensor of a model on the samples, as backend `name` finds it.

    Raises:
        BuildRefusedError: it cannot.
    """
    quantiser, whole = _quantiser(name), _embedded_bytes(model)
    with temporary_folder("calibrate") as workdir:
        return _refused_if_failing(lambda: quantiser.calibrate(whole, samples, method, workdir))


def quantise(name: str, model: bytes, recipe: QuantiseRecipe) -> bytes:
    """Returns the model as backend `name` quantises it.

    Raises:
        BuildRefusedError: it cannot.
    """
    quantiser, whole = _quantiser(name), _embedded_bytes(model)
    with temporary_folder("quantise") as workdir:
        return _refused_if_failing(lambda: quantiser.quantise(whole, recipe, workdir))


def _quantiser(name: str) -> Quantiser:
    quantiser = backend(name)
    if not isinstance(quantiser, Quantiser):
        raise BuildRefusedError(f"{name} does not quantise models")
    return quantiser


def run_bundle(path: Path, samples: Sequence[Sample], options: MeasureOptions) -> list[dict[str, Value]]:
    """Returns what a bundle gives on each sample."""
    with _loaded(path, options) as program:
        return [program.run(sample) for sample in samples]


def measure(paths: Sequence[Path], samples: Sequence[Sample], options: MeasureOptions) -> Measured:
    """Returns for each bundle its milliseconds on each sample: of a call (`inflight` 1), or an item.

    The bundles take turns; `options.seconds` are for each of them, all samples together.
    """
    if sum(path.stat().st_size for path in paths) > MOST_TOGETHER:
        loads = [partial(_loaded_call, path, options) for path in paths]
        return raced_apart(loads, samples, options.seconds, options.inflight)
    with ExitStack() as stack:
        programs = [stack.enter_context(_loaded(path, options)) for path in paths]
        calls = [program.run for program in programs]
        return raced(calls, samples, options.seconds, options.inflight)


@contextmanager
def _loaded_call(path: Path, options: MeasureOptions) -> Iterator[Call]:
    with _loaded(path, options) as program:
        yield program.run


def _loaded(path: Path, options: MeasureOptions) -> "Program":
    from nndeploy.runtime.load_options import LoadOptions
    from nndeploy.runtime.program import load_bundle

    how = LoadOptions(
        threads=options.threads, device=options.device, custom_op_libraries=options.custom_op_libraries, cache_dir=""
    )
    return load_bundle(path, how, trusted=True)  # it was built just now, and is signed when it is whole


def _as_read_by(name: str, model: "ir.Model") -> "ir.Model":
    """Returns a model with its weights where a backend reads them.

    Raises:
        BuildRefusedError: one that maps no files is to read more than a message holds.
    """
    return model if isinstance(backend(name), MapsWeights) else _embedded(model)


def _embedded_bytes(model: bytes) -> bytes:
    if not named_files(model):
        return model
    import onnx_ir as ir

    from nndeploy.backend_kit.query import bytes_of
    from nndeploy.frontend.stored_weights import model_from_bytes

    return bytes_of(ir.to_proto(_embedded(model_from_bytes(model))))


def _embedded(model: "ir.Model") -> "ir.Model":
    from nndeploy.frontend.stored_weights import MAX_EMBEDDED_BYTES, embedded, stored_bytes

    if stored_bytes(model) > MAX_EMBEDDED_BYTES:
        raise BuildRefusedError(_TOO_LARGE)
    return embedded(model)


def _refused_if_failing(call: Callable[[], T]) -> T:
    try:
        return call()
    except (BuildRefusedError, NndeployError):
        raise
    except Exception as err:  # whatever a library throws is its way to say no
        if lacks_space(err):
            raise full_disk() from err
        raise BuildRefusedError(_bug_in(err) or reason_of(err)) from err


def _bug_in(error: Exception) -> str:
    """Returns in one line where in a backend's own code an exception arose that only a mistake raises, else ""."""
    if not isinstance(error, AssertionError | AttributeError | LookupError | NameError) or error.__traceback__ is None:
        return ""
    *_, (frame, line) = traceback.walk_tb(error.__traceback__)
    module = str(frame.f_globals.get("__name__", ""))
    if not module.startswith("nndeploy"):
        return ""
    return f"a bug of {module}, line {line}: {type(error).__name__}: {reason_of(error)}"


def _checked_artifact(name: str, artifact: Artifact, options: BuildOptions) -> Artifact:
    """Returns the artifact; that of a backend which does not tell what is code counts as code."""
    if artifact.precision not in ("fp32", options.precision):
        raise UnavailableError(f"backend {name!r} computes in {artifact.precision!r:.40}, which was not asked for")
    for file in artifact.files:
        if not _FILE_NAME.fullmatch(file):
            raise UnavailableError(f"backend {name!r} made a file with an unusable name: {file!r}")
    engine = backend(name)
    if not isinstance(engine, TellsCode):
        return replace(artifact, native_code=True)
    files = {file: memoryview(data) for file, data in artifact.files.items()}
    if bool(engine.code_files(files).names) != artifact.native_code:
        raise UnavailableError(f"backend {name!r} does not say whether its files are code as its artifact does")
    return artifact


def _why_not_run(name: str, target: Target) -> str:
    probe = backend(name).probe(target)
    return "" if probe.can_run else probe.reason or "it cannot run here"


def _run(
    name: str, artifact: Artifact, options: BuildOptions, samples: Sequence[Sample], place: Place
) -> list[dict[str, Value]]:
    files = {file: memoryview(data) for file, data in artifact.files.items()}
    open_options = OpenOptions(place.gpu or "cpu", 1, options.custom_op_libraries)
    with letting_go_of_pages():
        session = backend(name).open(files, artifact.metadata, open_options)
    try:
        return [_outputs_on(session, sample) for sample in samples]
    finally:
        session.close()


def _outputs_on(session: Session, sample: Sample) -> dict[str, Value]:
    try:
        outputs = session.run(sample)
    except Exception as err:  # whatever a library throws is its way to say no
        raise BuildRefusedError(f"{reason_of(err)} at {shapes_text(sample)}") from err
    return on_host(outputs, outputs)
