# SPDX-License-Identifier: Apache-2.0
"""What is known of a model before it is compiled: what it declares, and the files that exporters put beside it.

Files may have been written by anybody; one that is no JSON object is one line. A model of optimum's lies in a folder
`onnx` below its files, so the folder above is looked into too.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nndeploy.errors import DataError, MissingInputError, UsageError
from nndeploy.files.plain_yaml import section_of_yaml
from nndeploy.files.whole_files import read_regular
from nndeploy.frontend.model_overview import overview_of
from nndeploy.values.types import TensorType

MAX_JSON = 64 << 20


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model, its inputs and outputs that are tensors, and the pipeline file that is to be written."""

    model: Path
    out: Path
    inputs: Mapping[str, TensorType]
    outputs: Mapping[str, TensorType]
    metadata: Mapping[str, str]

    def found(self, *names: str) -> Path | None:
        """Returns the first file of these names that is there, beside the model or one folder above."""
        folder = self.model.absolute().parent
        paths = (above / name for above in (folder, folder.parent) for name in names)
        return next((path for path in paths if path.is_file()), None)

    def needed(self, name: str, what: str) -> Path:
        """Returns a file that has to be there; `what` says what it is.

        Raises:
            MissingInputError: it is not there.
        """
        path = self.found(name)
        if path is None:
            raise MissingInputError(f"no {name} beside the model", where=str(self.model), hint=f"put {what} there")
        return path

    def json(self, name: str) -> dict[str, Any]:
        """Returns the object in a file of JSON, {} where there is no such file.

        Raises:
            DataError: it holds something else.
        """
        path = self.found(name)
        if path is None:
            return {}
        try:
            data = json.loads(read_regular(path, MAX_JSON))
        except (ValueError, RecursionError) as err:
            raise DataError(f"is no JSON: {err}", where=str(path)) from err
        if not isinstance(data, dict):
            raise DataError("holds no JSON object", where=str(path))
        return data

    def yaml(self, name: str, section: str) -> dict[str, Any]:
        """Returns the table below a name of a file of YAML, {} where there is no such file or name.

        Raises:
            DataError: it holds something else.
        """
        path = self.found(name)
        if path is None:
            return {}
        try:
            data = section_of_yaml(read_regular(path, MAX_JSON), section)
        except DataError as err:
            err.within(str(path))
            raise
        return data if isinstance(data, dict) else {}

    def named(self, path: Path) -> str:
        """Returns the name of a file as the pipeline has it, in quotes: relative to the pipeline's own folder."""
        return quoted(os.path.relpath(path.absolute(), self.out.absolute().parent))


def quoted(text: str) -> str:
    """Returns a text as TOML writes it."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def whole(value: object, most: int = 1 << 31) -> int | None:
    """Returns a whole number of a file of JSON from 1 to `most`, or None for anything else."""
    return value if type(value) is int and 1 <= value <= most else None


def model_folder(model: Path, out: Path) -> ModelFolder:
    """Returns what is known of a model; no library that parses models is loaded.

    Raises:
        MissingInputError: there is no such file.
        ModelError: it is no model.
        UsageError: it is a bundle or a pipeline, and not what these are made of.
    """
    if model.suffix in (".nnd", ".toml"):
        raise UsageError(f"{str(model)!r} is no ONNX model", hint="--model MODEL.onnx")
    found = overview_of(model)
    inputs, outputs = (
        {one.name: kind for one in values if (kind := _tensor(one.type)) is not None}
        for values in (found.inputs, found.outputs)
    )
    return ModelFolder(model, out, inputs, outputs, found.metadata)


def _tensor(text: str) -> TensorType | None:
    """Returns the type that a text like float32[N,3,?] writes, None for what is no tensor."""
    dtype, bracket, rest = text.partition("[")
    if not bracket or not rest.endswith("]") or "(" in dtype:
        return None
    axes = rest[:-1].split(",") if rest != "]" else []
    if axes == ["..."]:
        return TensorType(dtype, None)
    return TensorType(dtype, tuple(int(axis) if axis.isdecimal() else None if axis == "?" else axis for axis in axes))
