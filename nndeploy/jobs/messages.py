# SPDX-License-Identifier: Apache-2.0
"""What crosses between a parent and its child: a request and a response, as files in a private folder.

Plain data travels as JSON, models as ONNX bytes, values as `nndeploy.bundle.values` files; nothing is ever unpickled.
Both sides stand together so that the layout of the folder is on one page:

    request.json  model.onnx  sample-<i>.values          response.json  files/<i>  output-<i>.values
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nndeploy.bundle.values import decode_values, encode_values
from nndeploy.errors import BuildRefusedError, NndeployError, error_from_json, error_to_json
from nndeploy.files.file_content import content_of, write_content
from nndeploy.jobs.tasks import Built, MeasureOptions, Sample
from nndeploy.plugin.interface import Artifact, BuildOptions
from nndeploy.target.place_limits import PlaceLimit
from nndeploy.target.target import Gpu, Target
from nndeploy.values.types import DimRange, Value

if TYPE_CHECKING:
    import onnx_ir as ir


FULL = b"full\n"
"""The answer of a child that kept so much memory that the next job needs another child."""

NO_SPACE = b"no space\n"
"""The answer of a child that could not leave its response, because the disk is full."""


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

    def libraries(self) -> tuple[str, ...]:
        """Returns the libraries of the user's that the task loads."""
        return (*self.options.custom_op_libraries, *self.measure.custom_op_libraries)


@dataclass(frozen=True, slots=True)
class Response:
    """What a task gave: plain data, files and values."""

    result: Any = None
    files: Mapping[str, bytes | memoryview] = field(default_factory=dict)
    outputs: Sequence[dict[str, Value]] = ()


def model_bytes(model: "ir.Model") -> bytes:
    """Returns a model as ONNX bytes; weights that lie in a file (`nndeploy.frontend.stored_weights`) stay there.

    Raises:
        BuildRefusedError: what is not in a file is larger than 2 GiB.
    """
    import onnx_ir as ir

    from nndeploy.backend_kit.query import bytes_of

    return bytes_of(ir.to_proto(model))


def request_to_folder(request: Request, folder: Path) -> None:
    """Writes a request; the parent's side."""
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
            precision=data["options"]["precision"],
            pace=data["options"]["pace"],
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
            "gpus": tuple(_gpu_from_json(gpu) for gpu in data["gpus"]),
            "libraries": tuple((name, version) for name, version in data["libraries"]),
            "places": tuple(PlaceLimit(**place) for place in data["places"]),
        }
    )


def _gpu_from_json(data: Mapping[str, Any]) -> Gpu:
    descriptor = ((key, tuple(value) if isinstance(value, list) else value) for key, value in data["cudnn"])
    return Gpu(**{**data, "cudnn": tuple(descriptor)})


def response_to_folder(response: Response | NndeployError | BuildRefusedError, folder: Path) -> None:
    """Writes what a task gave; the child's side. The JSON comes last: it says that all is there."""
    if isinstance(response, BuildRefusedError):
        data: dict[str, Any] = {"refused": str(response)}
    elif isinstance(response, NndeployError):
        data = {"error": error_to_json(response)}
    else:
        (folder / "files").mkdir()
        for i, (_, content) in enumerate(response.files.items()):
            write_content(folder / "files" / str(i), content)
        for i, outputs in enumerate(response.outputs):
            (folder / f"output-{i}.values").write_bytes(encode_values(outputs))
        data = {"result": response.result, "files": list(response.files), "num_outputs": len(response.outputs)}
    partial = folder / "response.partial"
    partial.write_text(json.dumps(data), encoding="utf-8")
    partial.rename(folder / "response.json")


def response_from_folder(folder: Path) -> Response:
    """Returns the response that the child left; the parent's side.

    Raises:
        BuildRefusedError: the task refused.
        NndeployError: the task raised one; it is raised here again.
    """
    data = json.loads((folder / "response.json").read_text(encoding="utf-8"))
    if "refused" in data:
        raise BuildRefusedError(data["refused"])
    if "error" in data:
        raise error_from_json(data["error"])
    return Response(
        data["result"],
        {name: content_of(folder / "files" / str(i)) for i, name in enumerate(data["files"])},
        [decode_values(content_of(folder / f"output-{i}.values")) for i in range(data["num_outputs"])],
    )


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
