# SPDX-License-Identifier: Apache-2.0
"""A compile in a child process, as the command runs it: the parent never maps a library that parses models.

The parent (`compile_in_child`) writes a request, hears events on the child's standard output (one JSON array a line)
and reads the report. The child (`python -m nndeploy.compiler.job FOLDER`) runs the flow, with each call of a backend
in a child of its own. A crash of the ONNX library on a hostile model is then one line that names the stage.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from nndeploy.bundle.report import Report, report_from_json, report_to_json
from nndeploy.errors import CheckError, DeadlineError, ModelError, NndeployError
from nndeploy.jobs.child import describe_exit, drained, kill_group, start_child
from nndeploy.jobs.memory import limit_memory
from nndeploy.jobs.messages import error_from_json, error_to_json
from nndeploy.jobs.temporary import NO_SPACE, lacks_space, no_space, temporary_folder
from nndeploy.jobs.watch import Limits, Watch

GRACE_SECONDS = 5.0
LIMITS = ("time_limit", "total_time_limit", "memory_limit")
"""The arguments that say how much a compile may take."""


def compile_in_child(arguments: Mapping[str, Any], on_event: Callable[[str, str], None]) -> Report:
    """Returns the report of a compile whose `arguments` are plain data (see `_keywords`).

    Raises:
        NndeployError: what the compile raised; a crash of the child is a ModelError that names the stage.
    """
    with temporary_folder("compile") as folder:
        (folder / "request.json").write_text(json.dumps(arguments), encoding="utf-8")
        stage = _run(folder, on_event, Limits(arguments["total_time_limit"], arguments["memory_limit"]))
        response = folder / "response.json"
        if not response.exists():
            raise ModelError(stage, where=str(arguments["source"]))
        data = json.loads(response.read_text(encoding="utf-8"))
        if "error" in data:
            raise _with_report(error_from_json(data["error"]), data.get("report"))
        return report_from_json(data["report"])


def _with_report(error: NndeployError, report: Mapping[str, Any] | None) -> NndeployError:
    if isinstance(error, CheckError) and report is not None:
        error.report = report_from_json(report)
    return error


def _run(folder: Path, on_event: Callable[[str, str], None], limits: Limits) -> str:
    """Runs the child to its end; returns what to say where it left no response.

    Raises:
        DeadlineError: it took more time or memory than it may.
    """
    process = start_child("nndeploy.compiler.job", [str(folder)], folder)
    assert process.stdout is not None
    assert process.stderr is not None
    reader, log = drained(process.stderr)
    stage = "start"
    try:
        with Watch(process, limits) as watch:
            for line in process.stdout:
                stage, detail = json.loads(line)
                on_event(stage, detail)
            returncode = process.wait()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)  # lets the child remove a half-written output
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
        raise
    finally:
        kill_group(process)
        reader.join(1.0)
        process.stdout.close()
        if not reader.is_alive():
            process.stderr.close()
    if watch.verdict:
        hint = "--total-time-limit and --memory-limit say how much it may take"
        raise DeadlineError(f"the compile was ended in stage {stage!r}: {watch.verdict}", hint=hint)
    if returncode == NO_SPACE:
        raise no_space()
    if returncode > 0:
        sys.stderr.write(bytes(log).decode("utf-8", "replace"))  # a bug of ours: its traceback
        raise NndeployError(f"the compile {describe_exit(returncode)} in stage {stage!r}", hint="please report this")
    return f"a library {describe_exit(returncode)} in stage {stage!r} on this model"


def _keywords(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the keyword arguments of `compile_model` for a request."""
    from nndeploy.bundle.manifest import ImageInput
    from nndeploy.checking.samples import samples_from_folder
    from nndeploy.frontend.shapes import parse_shape_options, parse_trtexec_shapes
    from nndeploy.stream.pipeline.bundled_pipeline import carried_pipeline

    keywords = dict(arguments)
    for elsewhere in ("source", "out", "jobs", "shape_texts", "trtexec_shapes", *LIMITS):
        del keywords[elsewhere]
    keywords["shapes"] = {
        **parse_trtexec_shapes(*arguments["trtexec_shapes"]),
        **parse_shape_options(arguments["shape_texts"]),
    }
    if keywords["samples"] is not None:
        keywords["samples"] = samples_from_folder(Path(keywords["samples"]))
    if keywords["image_input"] is not None:
        image: dict[str, Any] = keywords["image_input"]
        keywords["image_input"] = ImageInput(**{k: _frozen(v) for k, v in image.items()})
    if keywords["pipeline"] is not None:
        path, where = keywords["pipeline"]
        keywords["pipeline"] = carried_pipeline(Path(path), where)
    keywords["pins"] = [tuple(pin) for pin in keywords["pins"]]
    return keywords


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _compile(folder: Path, events: Callable[[str, str], None]) -> dict[str, Any]:
    from nndeploy.compiler.flow import compile_model
    from nndeploy.jobs.workers import ChildWorkers

    arguments = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    try:
        with closing(ChildWorkers(arguments["jobs"], arguments["time_limit"])) as workers:
            keywords = {**_keywords(arguments), "workers": workers, "events": events}
            report = compile_model(arguments["source"], arguments["out"], **keywords)
    except NndeployError as err:
        found = err.report if isinstance(err, CheckError) else None
        return {"error": error_to_json(err), **({"report": report_to_json(found)} if found is not None else {})}
    except OSError as err:
        if not lacks_space(err):
            raise
        return {"error": error_to_json(no_space())}
    except MemoryError:
        return {"error": error_to_json(DeadlineError("the machine has not enough memory for this model"))}
    return {"report": report_to_json(report)}


def main(folder: Path) -> None:
    """Runs the request in `folder`, events on standard output, and writes the response there."""
    from nndeploy.jobs.main import limit_this_process

    limit_this_process()
    limit_memory(json.loads((folder / "request.json").read_text(encoding="utf-8"))["memory_limit"])
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as pipe:
        os.dup2(2, 1)  # native libraries print; the events have the pipe for themselves

        def event(stage: str, detail: str) -> None:
            pipe.write(json.dumps([stage, detail]) + "\n")
            pipe.flush()

        response = _compile(folder, event)
    try:
        partial = folder / "response.partial"
        partial.write_text(json.dumps(response), encoding="utf-8")
        partial.rename(folder / "response.json")
    except OSError as err:
        sys.exit(NO_SPACE if lacks_space(err) else str(err))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
