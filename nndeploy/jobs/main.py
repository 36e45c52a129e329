# SPDX-License-Identifier: Apache-2.0
"""The child's side: `python -m nndeploy.jobs.main` runs the request in each folder that it reads from its input.

The child dies with its parent, leaves no core file, and takes no more memory than the machine has.
"""

import dataclasses
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from nndeploy.errors import BuildRefusedError, NndeployError, full_disk, lacks_space
from nndeploy.jobs import messages, tasks
from nndeploy.jobs.deferred_imports import defer_imports
from nndeploy.jobs.messages import FULL, NO_SPACE, Request, Response
from nndeploy.plugin.interface import QuantiseRecipe
from nndeploy.sandbox.child_process import die_with_parent
from nndeploy.sandbox.memory import keeps_much, limit_file_size, limit_memory, machine_memory_bytes
from nndeploy.target.target import Target

if TYPE_CHECKING:
    import onnx_ir as ir


def limit_this_process() -> None:
    """Makes this process die with its parent, gain no privileges, dump no core and not outgrow the machine."""
    die_with_parent()
    limit_memory(machine_memory_bytes())


def perform(request: Request) -> Response:
    """Returns what the task that the request names gives."""
    match request.task:
        case "supports":
            said = tasks.supports(_name(request), _model(request), _target(request), request.options)
            return Response([[answer.ok, answer.reason] for answer in said])
        case "build":
            return messages.built_to_response(
                tasks.build(_name(request), _model(request), _target(request), request.options, request.samples)
            )
        case "evaluate":
            assert request.model is not None
            outputs = tasks.evaluate(_name(request), request.model, request.samples, request.options)
            return Response(outputs=outputs)
        case "calibrate":
            assert request.model is not None
            method = request.arguments["method"]
            return Response(dict(tasks.calibrate(_name(request), request.model, request.samples, method)))
        case "quantise":
            assert request.model is not None
            model = tasks.quantise(_name(request), request.model, _recipe(request))
            return Response(files={"model.onnx": model})
        case "run_bundle":
            return Response(outputs=tasks.run_bundle(Path(request.arguments["path"]), request.samples, request.measure))
        case "measure":
            paths = [Path(path) for path in request.arguments["paths"]]
            return Response(dataclasses.asdict(tasks.measure(paths, request.samples, request.measure)))
    raise AssertionError(f"unknown task {request.task!r}")


def _name(request: Request) -> str:
    return str(request.arguments["backend"])


def _recipe(request: Request) -> QuantiseRecipe:
    data = request.arguments["recipe"]
    return QuantiseRecipe(data["form"], tuple(data["nodes"]), data["ranges"])


def _target(request: Request) -> Target:
    assert request.target is not None
    return request.target


def _model(request: Request) -> "ir.Model":
    from nndeploy.frontend.stored_weights import model_from_bytes

    assert request.model is not None
    return model_from_bytes(request.model)


def perform_in(folder: Path) -> None:
    """Runs the request in `folder` and writes the response there."""
    try:
        response: Response | NndeployError | BuildRefusedError = perform(messages.request_from_folder(folder))
    except (NndeployError, BuildRefusedError) as err:
        response = full_disk() if lacks_space(err) else err
    except Exception as err:  # a plugin's or a library's own failure: one more refusal with a reason
        refusal = BuildRefusedError(f"{type(err).__name__}: {tasks.reason_of(err)}")
        response = full_disk() if lacks_space(err) else refusal
    messages.response_to_folder(response, folder)


def main() -> None:
    """Performs jobs until the input ends; answers each with an empty line, `FULL` or `NO_SPACE`.

    No file grows beyond the machine's memory, through which all that a job makes passes.
    """
    limit_this_process()
    limit_file_size(machine_memory_bytes())
    defer_imports()
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # native libraries print; the answers have the pipe for themselves
        for line in sys.stdin:
            try:
                perform_in(Path(line.rstrip("\n")))
                answer = FULL if keeps_much() else b"\n"
            except OSError as err:
                if not lacks_space(err):
                    raise
                answer = NO_SPACE
            answers.write(answer)
            answers.flush()


if __name__ == "__main__":
    main()
