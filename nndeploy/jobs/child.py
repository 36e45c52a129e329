# SPDX-License-Identifier: Apache-2.0
"""One call in a child process: a request goes into a private folder, the child leaves its response there.

Plain data travels as JSON, models as ONNX bytes, values as `nndeploy.bundle.values` files; nothing is ever unpickled.
The parent side (`call`) and the child side (`request_from_folder`, `response_to_folder`) stand together so that the
layout of the folder is on one page:

    request.json  model.onnx  sample-<i>.values          response.json  files/<name>  output-<i>.values
"""

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from nndeploy.bundle.values import decode_values, encode_values
from nndeploy.errors import ERRORS_BY_CODE, NndeployError
from nndeploy.jobs.tasks import Built, MeasureOptions, Sample, reason_of
from nndeploy.plugin.interface import Artifact, BuildOptions, BuildRefusedError
from nndeploy.target import Target
from nndeploy.value_types import DimRange, Value

if TYPE_CHECKING:
    import onnx_ir as ir

MAX_LOG_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    """A call: `task` names a function of `nndeploy.jobs.tasks`, `arguments` are plain data."""

    task: str
    arguments: Mapping[str, Any]
    target: Target | None = None
    options: BuildOptions = field(default_factory=BuildOptions)
    measure: MeasureOptions = field(default_factory=MeasureOptions)
    model: bytes | None = None
    samples: Sequence[Sample] = ()


@dataclass(frozen=True, slots=True)
class Response:
    """What a task gave: plain data, files and values."""

    result: Any = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    outputs: Sequence[dict[str, Value]] = ()


def model_bytes(model: "ir.Model") -> bytes:
    """Returns a model as ONNX bytes."""
    import onnx_ir as ir

    return bytes(ir.to_proto(model).SerializeToString())


def call(request: Request, seconds_limit: float) -> Response:
    """Returns what the child answered.

    Raises:
        BuildRefusedError: the library refused, the child crashed, or its time was over.
        NndeployError: the task raised one; it is raised here again.
    """
    with tempfile.TemporaryDirectory(prefix="nndeploy-job-") as name:
        folder = Path(name)
        _request_to_folder(request, folder)
        _run_child(folder, seconds_limit)
        return _response_from_folder(folder)


def child_environment(folder: Path) -> dict[str, str]:
    """Returns the environment of a child: nothing of the user's but the search path and the locale."""
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "LANG": "C.UTF-8",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "ORT_DISABLE_TELEMETRY": "1",
    }


def start_child(arguments: Sequence[str], folder: Path, stdout: int | None) -> "subprocess.Popen[bytes]":
    """Starts `python -m nndeploy.jobs.main` in a session of its own; its noise goes to stdout's place or the log."""
    return subprocess.Popen(
        [sys.executable, "-I", "-P", "-m", "nndeploy.jobs.main", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.STDOUT if stdout == subprocess.PIPE else subprocess.PIPE,
        env=child_environment(folder),
        start_new_session=True,
    )


def kill_group(process: "subprocess.Popen[bytes]") -> None:
    """Kills a child and whatever it started in its session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def drained(stream: IO[bytes]) -> tuple[threading.Thread, bytearray]:
    """Returns a started thread that reads `stream` to its end, and the buffer with the last bytes of it."""
    log = bytearray()

    def read() -> None:
        while chunk := os.read(stream.fileno(), 65536):
            log.extend(chunk)
            del log[:-MAX_LOG_BYTES]

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread, log


def describe_exit(returncode: int) -> str:
    """Returns "crashed (SIGSEGV)" or "ended with status 3"."""
    if returncode < 0:
        return f"crashed ({signal.Signals(-returncode).name})"
    return f"ended with status {returncode}"


def _run_child(folder: Path, seconds_limit: float) -> None:
    process = start_child([str(folder)], folder, subprocess.PIPE)
    assert process.stdout is not None
    reader, log = drained(process.stdout)
    try:
        returncode = process.wait(seconds_limit)
    except subprocess.TimeoutExpired as err:
        raise BuildRefusedError(f"no answer within {seconds_limit:g} s") from err
    finally:
        kill_group(process)
        reader.join(1.0)
        if not reader.is_alive():
            process.stdout.close()
    if returncode != 0 or not (folder / "response.json").exists():
        last = bytes(log).decode("utf-8", "replace").strip().splitlines()[-1:]
        raise BuildRefusedError(reason_of(Exception(f"the library {describe_exit(returncode)} {' '.join(last)}")))


def _request_to_folder(request: Request, folder: Path) -> None:
    if request.model is not None:
        (folder / "model.onnx").write_bytes(request.model)
    for i, sample in enumerate(request.samples):
        (folder / f"sample-{i}.values").write_bytes(encode_values(sample))
    data = {
        "task": request.task,
        "arguments": dict(request.arguments),
        "target": None if request.target is None else dataclasses.asdict(request.target),
        "options": dataclasses.asdict(request.options),
        "measure": dataclasses.asdict(request.measure),
        "num_samples": len(request.samples),
    }
    (folder / "request.json").write_text(json.dumps(data), encoding="utf-8")


def request_from_folder(folder: Path) -> Request:
    """Returns the request that the parent left; the child's side."""
    data = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    model = folder / "model.onnx"
    return Request(
        data["task"],
        data["arguments"],
        None if data["target"] is None else _target_from_json(data["target"]),
        BuildOptions(
            threads=data["options"]["threads"],
            ranges={name: DimRange(**sizes) for name, sizes in data["options"]["ranges"].items()},
            custom_op_libraries=tuple(data["options"]["custom_op_libraries"]),
        ),
        MeasureOptions(**{**data["measure"], "custom_op_libraries": tuple(data["measure"]["custom_op_libraries"])}),
        model.read_bytes() if model.exists() else None,
        [decode_values((folder / f"sample-{i}.values").read_bytes()) for i in range(data["num_samples"])],
    )


def _target_from_json(data: Mapping[str, Any]) -> Target:
    return Target(
        **{
            **data,
            "cpu_features": tuple(data["cpu_features"]),
            "caches": tuple((level, size) for level, size in data["caches"]),
        }
    )


def response_to_folder(response: Response | NndeployError | BuildRefusedError, folder: Path) -> None:
    """Writes what a task gave; the child's side. The JSON comes last: it says that all is there."""
    if isinstance(response, BuildRefusedError):
        data: dict[str, Any] = {"refused": str(response)}
    elif isinstance(response, NndeployError):
        data = {"error": error_to_json(response)}
    else:
        (folder / "files").mkdir()
        for i, (_, content) in enumerate(response.files.items()):
            (folder / "files" / str(i)).write_bytes(content)
        for i, outputs in enumerate(response.outputs):
            (folder / f"output-{i}.values").write_bytes(encode_values(outputs))
        data = {"result": response.result, "files": list(response.files), "num_outputs": len(response.outputs)}
    partial = folder / "response.partial"
    partial.write_text(json.dumps(data), encoding="utf-8")
    partial.rename(folder / "response.json")


def _response_from_folder(folder: Path) -> Response:
    data = json.loads((folder / "response.json").read_text(encoding="utf-8"))
    if "refused" in data:
        raise BuildRefusedError(data["refused"])
    if "error" in data:
        raise error_from_json(data["error"])
    return Response(
        data["result"],
        {name: (folder / "files" / str(i)).read_bytes() for i, name in enumerate(data["files"])},
        [decode_values((folder / f"output-{i}.values").read_bytes()) for i in range(data["num_outputs"])],
    )


def error_to_json(error: NndeployError) -> dict[str, str]:
    """Returns an error as plain data."""
    return {"code": error.code, "what": error.what, "where": error.where, "hint": error.hint}


def error_from_json(data: Mapping[str, str]) -> NndeployError:
    """Returns the error that `data` describes."""
    kind = ERRORS_BY_CODE.get(data["code"], NndeployError)
    return kind(data["what"], where=data["where"], hint=data["hint"])


def built_to_response(built: Built) -> Response:
    """Returns what a build gave in the form that crosses processes."""
    artifact = {key: value for key, value in _fields(built.artifact).items() if key != "files"}
    return Response({"artifact": artifact, "not_run": built.not_run}, built.artifact.files, built.outputs)


def built_from(response: Response) -> Built:
    """Returns the build that a response describes."""
    artifact = Artifact(files=response.files, **response.result["artifact"])
    return Built(artifact, tuple(response.outputs), response.result["not_run"])


def _fields(value: Any) -> dict[str, Any]:
    return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
