# SPDX-License-Identifier: Apache-2.0
"""A pipeline to begin with: written for a model, and checked on one input before the file appears.

Law: what is written is read by `run` and `compile --pipeline`, and its loaders make what the model declares to take.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np

from nndeploy.bundle.manifest import Manifest, NamedType
from nndeploy.errors import DataError
from nndeploy.files.named_outputs import write_output
from nndeploy.files.whole_files import read_regular
from nndeploy.processors.parameters import FilesBeside
from nndeploy.starters.embed import embed
from nndeploy.starters.generate import generate
from nndeploy.starters.model_folder import ModelFolder, model_folder
from nndeploy.stream.description import PipelinePlan
from nndeploy.stream.pipeline.bundled_pipeline import MAX_NAMED_BYTES
from nndeploy.stream.pipeline.checked_plan import checked_plan
from nndeploy.stream.pipeline.pipeline_file import pipeline_from_toml
from nndeploy.values.types import TensorType, Value

KINDS: Mapping[str, Callable[[ModelFolder], str]] = MappingProxyType({"embed": embed, "generate": generate})
"""What a pipeline is for -> what writes it."""


def write_pipeline(kind: str, model: Path, out: Path) -> dict[str, str]:
    """Writes a pipeline of a kind for a model; returns what its loaders made of one input, by input of the model.

    Raises:
        MissingInputError: the model, or a file that has to stand beside it, is not there.
        ModelError: it is no model.
        DataError: it is no model for that, or a file beside it does not fit it.
        CannotCreateError: the file cannot be written.
    """
    files = model_folder(model, out)
    data = KINDS[kind](files).encode("utf-8")
    made = _checked(data, files)
    write_output(out, lambda file: file.write(data))
    return made


def _checked(data: bytes, files: ModelFolder) -> dict[str, str]:
    """Returns the types of what a pipeline makes for its model of one input.

    Raises:
        DataError: the pipeline does not fit the model.
    """
    folder = files.out.absolute().parent
    beside = FilesBeside(lambda name: read_regular(folder / name, MAX_NAMED_BYTES), folder, is_here=False)
    file = pipeline_from_toml(data, str(files.out), beside)
    inputs, outputs = (
        tuple(NamedType(name, kind) for name, kind in values.items()) for values in (files.inputs, files.outputs)
    )
    (one,) = file.pipelines
    plan, _ = checked_plan(file, {one.name: Manifest(files.model.stem, "", inputs, outputs, (), {})})
    return _made_of_one_input(plan.pipelines[0], files)


def _made_of_one_input(plan: PipelinePlan, files: ModelFolder) -> dict[str, str]:
    fields: dict[str, Value] = {"text": "A text of a few words."}
    for step in (step for stage in plan.loaders for step in stage.steps):
        fields |= step(fields)
    assert plan.runner is not None
    made: dict[str, str] = {}
    for name, field in (plan.runner.inputs or {}).items():
        kind, value = files.inputs[name], np.asarray(fields[field])
        made[name] = str(TensorType(value.dtype.name, value.shape))
        if not _fits(value, kind):
            what = f"its steps make {made[name]} for the input {name!r}, but the model takes {kind}"
            raise DataError(what, where=str(files.model), hint="write the pipeline by hand")
    return made


def _fits(value: "np.ndarray[tuple[int, ...], np.dtype[np.generic]]", kind: TensorType) -> bool:
    if value.dtype.name != kind.dtype or kind.shape is None:
        return value.dtype.name == kind.dtype
    sizes = zip(kind.shape, value.shape, strict=False)
    return len(kind.shape) == value.ndim and all(not isinstance(size, int) or size == found for size, found in sizes)
