# SPDX-License-Identifier: Apache-2.0
"""A pipeline to begin with: written for a model, and checked on one input before the file appears.

Law: what is written is read by `run` and `compile --pipeline`, and its loaders make what the model declares to take.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np

from nndeploy.bundle.manifest import Manifest, NamedType
from nndeploy.errors import DataError, InputError, UsageError
from nndeploy.files.named_outputs import write_output
from nndeploy.files.whole_files import read_regular
from nndeploy.processors.parameters import FilesBeside
from nndeploy.starters.classify import classify
from nndeploy.starters.detect import detect
from nndeploy.starters.embed import embed
from nndeploy.starters.generate import generate
from nndeploy.starters.maps import depth, segment
from nndeploy.starters.model_folder import ModelFolder, model_folder
from nndeploy.starters.ocr import ocr
from nndeploy.starters.rerank import rerank
from nndeploy.starters.transcribe import transcribe
from nndeploy.starters.vad import vad
from nndeploy.stream.description import PipelinePlan, RunnerPlan
from nndeploy.stream.pipeline.bundled_pipeline import MAX_NAMED_BYTES
from nndeploy.stream.pipeline.checked_plan import checked_plan
from nndeploy.stream.pipeline.pipeline_file import pipeline_from_toml
from nndeploy.values.types import TensorType, Value

KINDS: Mapping[str, Callable[..., str]] = MappingProxyType(
    {
        "embed": embed,
        "rerank": rerank,
        "generate": generate,
        "classify": classify,
        "detect": detect,
        "depth": depth,
        "segment": segment,
        "ocr": ocr,
        "vad": vad,
        "transcribe": transcribe,
    }
)
"""What a pipeline is for -> what writes it, of the folder of each model."""
SEVERAL: Mapping[str, tuple[tuple[int, ...], str]] = MappingProxyType(
    {
        "ocr": ((2, 3), "one finds lines of text, one reads them, and a third may tell which are upside down"),
        "transcribe": (
            (2, 3),
            "Whisper's encoder, and its decoder: merged, or without and with past_key_values",
        ),
    }
)
"""How many models a kind takes, where it is not one, and which."""

_GREY_PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63686868000003"
    "0401814bd3d2100000000049454e44ae426082"
)
"""An image of one pixel."""


def write_pipeline(kind: str, models: Sequence[Path], out: Path, *, language: str | None = None) -> dict[str, str]:
    """Writes a pipeline of a kind for its models; returns what its loaders made of one input, by input of the model.

    `language` is that which is spoken, as "de", for `transcribe` alone; None: the likeliest one.

    Raises:
        UsageError: the kind takes another number of models, or no language, or the model does not know it.
        MissingInputError: a model, or a file that has to stand beside it, is not there.
        ModelError: it is no model.
        DataError: it is no model for that, or a file beside it does not fit it.
        CannotCreateError: the file cannot be written.
    """
    counts, hint = SEVERAL.get(kind, ((1,), ""))
    if len(models) not in counts:
        raise UsageError(f"{kind} takes {' or '.join(map(str, counts))} models, not {len(models)}", hint=hint)
    if language is not None and kind != "transcribe":
        raise UsageError(f"{kind} takes no language", hint="leave out --language")
    folders = [model_folder(model, out) for model in models]
    text = KINDS[kind](*folders) if language is None else transcribe(*folders, language=language)
    data = text.encode("utf-8")
    made = _checked(data, folders, out)
    write_output(out, lambda file: file.write(data))
    return made


def _checked(data: bytes, folders: Sequence[ModelFolder], out: Path) -> dict[str, str]:
    """Returns the types of what a pipeline makes for its models of one input.

    Raises:
        DataError: the pipeline does not fit a model.
    """
    folder = out.absolute().parent
    beside = FilesBeside(lambda name: read_regular(folder / name, MAX_NAMED_BYTES), folder, is_here=False)
    file = pipeline_from_toml(data, str(out), beside)
    models = {one.name: _model_of(one, folders) for one in file.pipelines if one.runner is not None}
    plan, _ = checked_plan(file, {name: _outside(model) for name, model in models.items()})
    try:
        made = _made_of_one_input(plan.pipelines, models)
    except InputError as err:
        raise err.within(str(out)) from err
    return {
        f"{name} of {stage}" if len(made) > 1 else name: kind for stage in made for name, kind in made[stage].items()
    }


def _model_of(plan: PipelinePlan, folders: Sequence[ModelFolder]) -> ModelFolder:
    """Returns the model of a pipeline: the one whose bundle it names, else the one whose input it fills."""
    assert plan.runner is not None
    own = [one for one in folders if one.model.with_suffix(".nnd").name == plan.runner.model]
    others = [one for one in folders if plan.runner.outputs.keys() <= one.outputs.keys()]
    return (own or others or [*folders])[0]


def _outside(files: ModelFolder) -> Manifest:
    inputs, outputs = (
        tuple(NamedType(name, kind) for name, kind in values.items()) for values in (files.inputs, files.outputs)
    )
    return Manifest(files.model.stem, "", inputs, outputs, (), {})


def _made_of_one_input(
    pipelines: Sequence[PipelinePlan], models: Mapping[str, ModelFolder]
) -> dict[str, dict[str, str]]:
    """Returns the types of what loaders make for the inputs of each model; what other models give is not known here.

    Raises:
        DataError: a type is not the one that the model takes.
    """
    fields: dict[str, Value] = {
        "text": "A text of a few words.", "pair": "Another one.", "data": _GREY_PNG,
        "samples": np.zeros(8000, np.float32), "rate": 8000,
    }  # fmt: skip
    made: dict[str, dict[str, str]] = {}
    for plan in pipelines:
        if plan.part:
            parts = fields.get(plan.each)
            fields[plan.part] = parts[0] if isinstance(parts, list) else np.zeros((8, 64, 3), np.uint8)
        for step in (step for stage in plan.loaders for step in stage.steps):
            fields |= step(fields)
        if plan.runner is not None:
            made[plan.name] = _taken(plan.runner, fields, models[plan.name])
    return made


def _taken(runner: RunnerPlan, fields: Mapping[str, Value], files: ModelFolder) -> dict[str, str]:
    made: dict[str, str] = {}
    for name, field in (runner.inputs or {}).items():
        if field not in fields:
            continue
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
