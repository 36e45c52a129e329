# SPDX-License-Identifier: Apache-2.0
"""The files of an artifact -> a session: of its plan, or of a course through several plans."""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import TypeAlias

from nndeploy.errors import BuildRefusedError, BundleError, UnavailableError
from nndeploy.plugin.interface import Artifact, Json, OpenOptions
from nndeploy.target.cpu_name import cpu_name
from nndeploy.target.target import WINDOW_BUFFER, Target, host_target
from nndeploy.version import __version__
from nndeploy_native.course import course_from_json, plan_file
from nndeploy_native.course_session import CourseSession
from nndeploy_native.kernel_library import kernel_library, level_here
from nndeploy_native.opened_model import OpenedModel, Options, Weights, opened_model
from nndeploy_native.plan import (
    DOCUMENT_FILE,
    PLAN_FILE,
    PLAN_FORMATS,
    PLAN_FORMATS_OF_COURSES,
    WEIGHTS_FILE,
    PlanDocument,
    check_borders,
    document_from_json,
)
from nndeploy_native.plan_session import PlanSession, ways_for
from nndeploy_native.tuned_tables import TunedFile
from nndeploy_native.worker_pool import WorkerPool

NativeSession: TypeAlias = PlanSession | CourseSession


def open_session(files: Mapping[str, memoryview], metadata: Mapping[str, Json], options: OpenOptions) -> NativeSession:
    """Returns a session over the files of an artifact; they must stay as long as it lives.

    Raises:
        UnavailableError: the device is no CPU, or no library is installed that this CPU runs and that knows the plan.
        BundleError: a file is missing or malformed, or the library refuses the plan.
    """
    if options.device != "cpu":
        raise UnavailableError(f"these kernels run on the CPU, not on {options.device!r}")
    if metadata.get("format") not in PLAN_FORMATS:
        reads = f"{min(PLAN_FORMATS)} to {max(PLAN_FORMATS)}"
        raise UnavailableError(f"an artifact of format {metadata.get('format')!r:.20}; this nndeploy reads {reads}")
    _check_files([WEIGHTS_FILE, DOCUMENT_FILE], files)
    if metadata["format"] in PLAN_FORMATS_OF_COURSES:
        course = course_from_json(bytes(files[DOCUMENT_FILE]))
        check_borders(course.inputs, course.outputs, options)
        names = [plan_file(number) for number in range(len(course.plans))]
        return CourseSession(_sessions(names, course.plans, files, metadata, options), course)
    document = document_from_json(bytes(files[DOCUMENT_FILE]))
    check_borders(document.inputs, document.outputs, options)
    (session,) = _sessions([PLAN_FILE], [document], files, metadata, options)
    return session


def _sessions(
    names: Sequence[str],
    documents: Sequence[PlanDocument],
    files: Mapping[str, memoryview],
    metadata: Mapping[str, Json],
    options: OpenOptions,
) -> list[PlanSession]:
    """Returns the sessions of plans over the same weights, which share their threads."""
    _check_files(names, files)
    library, host = kernel_library(str(metadata.get("precision", "fp32"))), host_target()
    caches = dict(host.caches)
    buffer = metadata.get("buffer_bytes", 0)
    buffer_bytes = buffer if isinstance(buffer, int) and buffer > 0 else caches.get(WINDOW_BUFFER, 0)
    threads = options.threads or host.num_cores
    weights = Weights(files, is_shared=len(names) > 1)
    shared_in = options.cache_dir if options.shares_weights else ""
    box = cache(lambda: _box(str(metadata.get("precision", "fp32")), host, buffer_bytes, threads))

    def opened(name: str, ways: bytes, shared_in: str = "") -> OpenedModel:
        how = Options(caches.get("l2", 0), buffer_bytes, threads)
        return opened_model(library, bytes(files[name]), weights, how, ways, shared_in)

    tuned = [
        TunedFile(options.cache_dir, bytes(files[name]), len(document.steps), box)
        for name, document in zip(names, documents, strict=True)
    ]
    models = [
        opened(name, ways_for(document, one.choices), shared_in)
        for name, document, one in zip(names, documents, tuned, strict=True)
    ]
    for name, model, document in zip(names, models, documents, strict=True):
        borders = len(document.plan_inputs), len(document.plan_outputs)
        if model.num_borders != borders or model.num_steps != len(document.steps):
            raise BundleError(f"{name} and {DOCUMENT_FILE} are of two builds")
    pool = _pool_for(max(models, key=lambda model: model.num_steps), threads) if models else None
    return [
        PlanSession(model, document, pool, one, partial(opened, name))  # ways that are tried leave no file
        for name, model, document, one in zip(names, models, documents, tuned, strict=True)
        if pool
    ]


def _box(precision: str, host: Target, buffer_bytes: int, threads: int) -> dict[str, Json]:
    """Returns all of this machine that the choice of how steps are done depends on."""
    return {
        "processor": cpu_name(),
        "level": level_here(precision).name,
        "caches": {name: size for name, size in host.caches if name != WINDOW_BUFFER},
        "buffer_bytes": buffer_bytes,
        "threads": threads,
        "version": __version__,
    }


def _pool_for(model: OpenedModel, threads: int) -> WorkerPool:
    library = model.library
    return WorkerPool(lambda count: library.nnd_pool_make(model.address, count), library.nnd_pool_free, threads)


def _check_files(names: Sequence[str], files: Mapping[str, memoryview]) -> None:
    for name in names:
        if name not in files:
            raise BundleError(f"the artifact has no {name}")


def steps_here(
    files: Mapping[str, memoryview], metadata: Mapping[str, Json], shapes: Mapping[str, tuple[int, ...]]
) -> list[dict[str, int | str]] | None:
    """Returns the steps of a plan with the windows that this machine chooses; None where it has no library.

    An input that is not in `shapes` has the least sizes of its ranges.

    Raises:
        BundleError: a file is missing or malformed.
        OtherSizesError: the plan does not hold for these shapes.
    """
    try:
        session = open_session(files, metadata, OpenOptions(threads=1))
    except UnavailableError:
        return None
    return session.steps_here(shapes)


def checked(artifact: Artifact) -> Artifact:
    """Returns an artifact that the library of this machine opens, where there is one.

    Raises:
        BuildRefusedError: the library refuses it; another machine's would too.
    """
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    try:
        open_session(files, artifact.metadata, OpenOptions(threads=1)).close()
    except UnavailableError:
        return artifact
    except BundleError as err:
        raise BuildRefusedError(str(err)) from err
    return artifact
