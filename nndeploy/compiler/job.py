# SPDX-License-Identifier: Apache-2.0
"""A compile in a child process, as the command runs it: the parent never maps a library that parses models.

The parent (`compile_in_child`) writes a request, hears events on the child's standard output (one JSON array a line)
and reads the report. The child (`python -m nndeploy.compiler.job FOLDER`) runs the flow, with each call of a backend
in a child of its own. A crash of the ONNX library on a hostile model is then one line that names the stage.

The child lives in a sandbox: it reads the model's folder, what the options name and programs; it writes its own folder,
and a folder beside each file that is to be made, which the parent moves to its place.
"""

import contextlib
import dataclasses
import importlib
import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Protocol

from nndeploy.bundle.report import Report, report_from_json, report_to_json
from nndeploy.compiler.compile_half import check_compile_half
from nndeploy.compiler.options import CompileLimits, CompileOptions
from nndeploy.compiler.outputs import BUNDLE, outputs_of
from nndeploy.compiler.signed_bundle import signed_by_this_machine
from nndeploy.errors import (
    CheckError,
    CrashedError,
    DeadlineError,
    MemoryLimitError,
    NndeployError,
    describe_exit,
    error_from_json,
    error_to_json,
    full_disk,
    lacks_space,
)
from nndeploy.files.handed_file import HandedFile
from nndeploy.jobs.deferred_imports import defer_imports
from nndeploy.jobs.temporary import (
    DISK_FAILS,
    NO_SPACE,
    disk_error,
    disk_fails,
    is_nearly_full,
    temporary_folder,
)
from nndeploy.jobs.watch import Limits, Watch
from nndeploy.options.described import described_fields, options_from
from nndeploy.sandbox import places
from nndeploy.sandbox.allowed import Sandbox
from nndeploy.sandbox.child_process import (
    ChildProcess,
    StartsChildren,
    drained,
    end_child,
    start_child,
)
from nndeploy.sandbox.forked import ForkServer, fork_server_off_this
from nndeploy.sandbox.memory import default_memory_limit, limit_memory, limit_processor_time

GRACE_SECONDS, LOG_SECONDS = 5.0, 1.0
MADE = "made"
"""The folder in the child's own where answers of libraries are left that another compile of the model may ask for."""
MAX_SECONDS = 1 << 30
"""More than anybody waits for; the kernel takes whole numbers."""


class Onlooker:
    """What a compile tells while it runs; whoever wants to hear of it overrides what it is about."""

    def started(self, process: ChildProcess) -> None:
        """Hears of the process that compiles: `nndeploy.sandbox.child_process.kill_group` ends it with all its own."""

    def event(self, stage: str, detail: str) -> None:
        """Hears that `stage` is at `detail`; an empty detail begins a stage."""

    def ended(self, log: bytes, most_bytes: int) -> None:
        """Hears the end of what the process wrote on standard error, and the most memory that was seen in use."""


class Keeper(Protocol):
    """What earlier compiles of the model left, and what this one leaves."""

    def known_calls(self) -> dict[str, Any]:
        """Returns answers of libraries, as `nndeploy.jobs.kept_calls.kept_calls` takes them."""

    def keep_calls(self, made: Path) -> None:
        """Takes the answers in a folder, which another process wrote; however the compile ended."""

    def keep_bundle(self, report: Report, files: Mapping[str, Path]) -> None:
        """Takes the report and the files, as `nndeploy.compiler.outputs` calls them, just before they get their places.

        Raises:
            NndeployError: they are not to get them.
        """


def compile_in_child(
    source: str,
    out: str | None,
    given: Mapping[str, Any],
    limits: CompileLimits,
    onlooker: Onlooker,
    keeper: Keeper | None = None,
    start: StartsChildren = start_child,
) -> Report:
    """Returns the report of a compile; paths are absolute.

    `given` is what the user gave of `CompileOptions`, as `nndeploy.options.described.options_from` takes it, in JSON.
    `onlooker` hears what happens; `keeper` knows what earlier compiles did, and takes what this one does; `start`
    starts the child.

    Raises:
        NndeployError: what the compile raised, or `keeper`; a crash of the child is a ModelError that names the stage.
    """
    check_compile_half()
    limits = dataclasses.replace(limits, memory_limit=limits.memory_limit or default_memory_limit())
    with ExitStack() as held:
        folder = held.enter_context(temporary_folder("compile"))
        handed = {name: held.enter_context(HandedFile(path)) for name, path in outputs_of(out, given).items()}
        request: dict[str, Any] = {
            "source": source,
            "out": handed[BUNDLE].path if BUNDLE in handed else None,
            "given": {**given, **{name: file.path for name, file in handed.items() if name != BUNDLE}},
            "limits": dataclasses.asdict(limits),
            "import_paths": plugin_paths(),
            "known_calls": None if keeper is None else keeper.known_calls(),
        }
        (folder / "request.json").write_text(json.dumps(request, default=str), encoding="utf-8")
        sandbox = None
        if limits.sandbox:
            writes = (str(folder), *(file.folder for file in handed.values()))
            known = (path for files in _calls_of(request).values() for path, _ in files.values())
            sandbox = Sandbox((*_reads(source, given), *known), writes, starts_sessions=True)
        try:
            crash = _run(folder, request["import_paths"], onlooker, limits, sandbox, start)
        finally:  # interrupted or out of time too: the next compile goes on from there
            if keeper is not None:
                keeper.keep_calls(folder / MADE)
        try:
            report = _answer(folder, crash.within(source))
        except NndeployError as err:
            for file in handed.values():
                err.where = file.own_names(err.where)
            raise
        made = {name: file.own_path for name, file in handed.items() if file.check()}
        if BUNDLE in made:  # signed before it is where others see it, by who may read keys; where it is says no child
            report = signed_by_this_machine(report, made[BUNDLE])
        if keeper is not None:
            keeper.keep_bundle(report, made)
        for file in handed.values():
            file.deliver()
        return report


def _calls_of(request: Mapping[str, Any]) -> dict[str, dict[str, tuple[str, str]]]:
    known = request["known_calls"]
    return {} if known is None else known["calls"]


def _reads(source: str, given: Mapping[str, Any]) -> Iterator[str]:
    """Yields what the compile may read: the model, and the paths that options name, each with what lies beside it."""
    yield from places.named(source)
    for name, (_, one) in described_fields(CompileOptions).items():
        texts = given.get(name) or ()
        for text in [texts] if isinstance(texts, str) else texts if isinstance(texts, list) else ():
            if one.is_path or (one.rooted is not None and Path(text).is_absolute()):
                yield from places.named(text)


def _answer(folder: Path, otherwise: NndeployError) -> Report:
    response = folder / "response.json"
    if not response.exists():
        raise otherwise
    data = json.loads(response.read_text(encoding="utf-8"))
    if "error" in data:
        raise _with_report(error_from_json(data["error"]), data.get("report"))
    return report_from_json(data["report"])


def _with_report(error: NndeployError, report: Mapping[str, Any] | None) -> NndeployError:
    if isinstance(error, CheckError) and report is not None:
        error.report = report_from_json(report)
    return error


def plugin_paths() -> list[str]:
    """Returns where the user says that plugins lie besides those that are installed."""
    paths = "" if sys.flags.ignore_environment else os.environ.get("PYTHONPATH", "")
    return [str(Path(path).absolute()) for path in paths.split(os.pathsep) if path]


def _run(
    folder: Path,
    import_paths: Sequence[str],
    onlooker: Onlooker,
    limits: CompileLimits,
    sandbox: Sandbox | None,
    start: StartsChildren,
) -> CrashedError:
    """Runs the child to its end; returns what to raise where it left no response.

    Raises:
        DeadlineError: it took more time or memory than it may.
    """
    process = start("nndeploy.compiler.job", [str(folder)], folder, import_paths=import_paths, sandbox=sandbox)
    onlooker.started(process)
    assert process.stdout is not None
    assert process.stderr is not None
    reader, log = drained(process.stderr)
    assert limits.memory_limit is not None
    watch = Watch(process, Limits(limits.total_time_limit, limits.memory_limit))
    stage = "start"
    try:
        with watch:
            for line in process.stdout:
                stage, detail = json.loads(line)
                onlooker.event(stage, detail)
            returncode = process.wait()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)  # lets the child remove a half-written output
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
        raise
    finally:
        end_child(process, reader, LOG_SECONDS)
        onlooker.ended(bytes(log), watch.most_bytes)
    if watch.verdict:
        hint = "--total-time-limit and --memory-limit say how much it may take"
        kind = MemoryLimitError if watch.is_memory else DeadlineError
        raise kind(f"the compile was ended in stage {stage!r}: {watch.verdict}", hint=hint)
    if returncode == NO_SPACE or (returncode and is_nearly_full(str(folder))):
        raise full_disk()
    if returncode == DISK_FAILS:
        raise disk_fails()
    if returncode > 0:
        sys.stderr.write(bytes(log).decode("utf-8", "replace"))  # a bug of ours: its traceback
        raise NndeployError(f"the compile {describe_exit(returncode)} in stage {stage!r}", hint="please report this")
    crash = CrashedError(f"a library {describe_exit(returncode)} in stage {stage!r} on this model")
    crash.signal = max(0, -returncode)
    return crash


def _compile(
    request: Mapping[str, Any], made: Path, events: Callable[[str, str], None], start: StartsChildren
) -> dict[str, Any]:
    from nndeploy.compiler.flow import compile_model
    from nndeploy.jobs.kept_calls import kept_calls
    from nndeploy.jobs.workers import ChildWorkers

    try:
        options = options_from(CompileOptions, request["given"])
        limits = CompileLimits(**request["limits"])
        jobs, seconds, paths = limits.jobs or os.cpu_count() or 1, limits.time_limit, request["import_paths"]
        kept = None if request["known_calls"] is None else kept_calls(request["known_calls"], made)
        with closing(
            ChildWorkers(jobs, seconds, None, paths, has_sandbox=limits.sandbox, kept=kept, start=start)
        ) as workers:
            report = compile_model(
                request["source"], request["out"], options, workers=workers, events=events, signs=False
            )
    except NndeployError as err:
        found = err.report if isinstance(err, CheckError) else None
        return {"error": error_to_json(err), **({"report": report_to_json(found)} if found is not None else {})}
    except MemoryError:
        return {"error": error_to_json(DeadlineError("this machine does not have enough memory for this model"))}
    except Exception as err:
        if (known := disk_error(err)) is None:
            raise
        return {"error": error_to_json(known)}
    return {"report": report_to_json(report)}


def _task_server(import_paths: Sequence[str]) -> ForkServer:
    """Returns what starts the children that ask libraries; it is forked off before this process reads the model."""
    importlib.import_module("nndeploy.compiler.warm_imports")
    return fork_server_off_this(import_paths)


def main(folder: Path) -> None:
    """Runs the request in `folder`, events on standard output, and writes the response there."""
    from nndeploy.jobs.main import limit_this_process

    limit_this_process()
    defer_imports()
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    limits = request["limits"]
    limit_memory(limits["memory_limit"])
    limit_processor_time(math.ceil(min(limits["total_time_limit"], MAX_SECONDS) * (os.cpu_count() or 1)))
    server = _task_server(request["import_paths"])
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as pipe:
        os.dup2(2, 1)  # native libraries print; the events have the pipe for themselves

        def event(stage: str, detail: str) -> None:
            pipe.write(json.dumps([stage, detail]) + "\n")
            pipe.flush()

        with closing(server):
            response = _compile(request, folder / MADE, event, server.start_child)
    partial = folder / "response.partial"
    partial.write_text(json.dumps(response), encoding="utf-8")
    partial.rename(folder / "response.json")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except OSError as err:
        if (known := disk_error(err)) is None:
            raise
        sys.exit(NO_SPACE if lacks_space(err) else DISK_FAILS)
