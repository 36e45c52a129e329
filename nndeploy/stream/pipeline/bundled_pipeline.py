# SPDX-License-Identifier: Apache-2.0
"""The default pipeline that a bundle carries: `compile --pipeline` puts it in, `run` takes it out.

Members: `pipeline/pipeline.toml` is the file as it was, `pipeline/files.json` maps each name in it to the member with
that file (labels, charsets). They are listed and hashed in the manifest as every member is; a reader that knows
nothing of pipelines leaves them alone. Processors are named, never shipped. Pipelines without a `model` run the bundle
itself; other models are looked for beside it.
"""

import contextlib
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from nndeploy.bundle.manifest import Manifest
from nndeploy.bundle.reader import Bundle, open_bundle
from nndeploy.errors import BundleError, DataError, MissingInputError, NndeployError, PolicyError
from nndeploy.files.shipped_configs import config_files
from nndeploy.files.strict_json import canonical_json, parse_json
from nndeploy.files.whole_files import read_regular
from nndeploy.processors.known_shapes import Sizes
from nndeploy.processors.parameters import FilesBeside
from nndeploy.processors.processor import ProcessorStep
from nndeploy.stream.pipeline.checked_plan import check_carried
from nndeploy.stream.pipeline.input_shapes import InputNames, input_shapes
from nndeploy.stream.pipeline.last_readers import last_positions
from nndeploy.stream.pipeline.pipeline_file import PipelineFile, pipeline_from_toml
from nndeploy.values.types import Value

TOML = "pipeline/pipeline.toml"
FILES = "pipeline/files.json"
MAX_NAMED_BYTES = 64 << 20
"""Largest size of a file that a pipeline names."""
MAX_FILES_JSON = 1 << 20


def pipeline_of_path(path: Path, where: str = "", *, is_carried: bool = False) -> PipelineFile:
    """Returns the pipeline in a TOML file, which messages call `where`; the files that it names are relative to it.

    One that `is_carried` is for a bundle, which will stand elsewhere: folders need not be here, but beside it.

    Raises:
        MissingInputError: there is no such file, or one that it names is missing.
        DataError: it is malformed.
    """

    def read(name: str) -> bytes:
        return read_regular(path.parent / name, MAX_NAMED_BYTES)

    try:
        data = read_regular(path, MAX_NAMED_BYTES)
    except MissingInputError as err:
        raise MissingInputError("no such pipeline", where=where or str(path), hint=_examples()) from err
    beside = FilesBeside(read, path.parent, is_carried=is_carried, is_here=not is_carried)
    return pipeline_from_toml(data, where or str(path), beside)


def _examples() -> str:
    files = config_files("pipelines")
    return f"examples in {files[0].parent}: {', '.join(path.name for path in files)}" if files else ""


@dataclass(frozen=True, slots=True)
class CarriedPipeline:
    """A pipeline for a bundle to carry: what `compile_model` takes."""

    file: PipelineFile
    members: Mapping[str, bytes]

    def check(self, manifest: Manifest, rows: Mapping[str, int]) -> None:
        """Checks it against the bundle's inputs, outputs and ranges, and the rows that its inputs choose from.

        Raises:
            DataError: it does not fit; the message names the file and the place in it.
        """
        check_carried(self.file, manifest, rows)

    def input_shapes(self, inputs: Sequence[str], optional: Set[str], outputs: Sequence[str]) -> dict[str, Sizes]:
        """Returns the sizes that it always makes of the bundle's inputs, None where they vary.

        `optional` are those of the inputs that a call may leave out.

        Raises:
            DataError: it does not fit these names.
        """
        return input_shapes(self.file, InputNames(inputs, optional, outputs))

    def last_positions(self, manifest: Manifest) -> frozenset[str]:
        """Returns the outputs of the bundle's model of which the pipeline reads the last position alone."""
        return last_positions(self.file, manifest)

    def results(self, outputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns what the steps behind the bundle's model make of the outputs of one call, by the processors' names.

        A step that reads something else, such as the image, is left out; so is all from one on that fails.
        """
        own = next(one for one in self.file.pipelines if one.runner is not None and not one.runner.model)
        assert own.runner is not None
        fields = {own.runner.outputs.get(name, name): value for name, value in outputs.items()}
        found: dict[str, str] = {}
        steps = [step for stage in own.posts for step in stage.steps if isinstance(step, ProcessorStep)]
        with contextlib.suppress(NndeployError):
            for step in steps:
                if fields.keys() >= set(step.takes):
                    fields |= step(fields)
                    found |= dict(zip(step.processor.gives, step.gives, strict=True))
        return {name: fields[field] for name, field in found.items()}


def carried_pipeline(path: Path, where: str = "") -> CarriedPipeline:
    """Returns the pipeline at `path`, which messages call `where`, with all that a bundle needs to carry it.

    Raises:
        MissingInputError: there is no such file, or one that it names is missing.
        DataError: it is malformed.
        PolicyError: it names a model that cannot stand beside the bundle.
    """
    file = pipeline_of_path(path, where, is_carried=True)
    _check_models_beside(file)
    if all(one.runner is None or one.runner.model for one in file.pipelines):
        raise DataError("no pipeline runs the bundle itself", where=file.where, hint="leave out its model")
    names = {name: f"pipeline/files/{number}" for number, name in enumerate(sorted(file.named))}
    members = {member: file.named[name] for name, member in names.items()}
    return CarriedPipeline(file, {TOML: file.data, FILES: canonical_json(names), **members})


def _check_models_beside(file: PipelineFile) -> None:
    """Refuses a pipeline with a model that lies neither in the bundle's folder nor below it."""
    for one in file.pipelines:
        model = one.runner.model if one.runner is not None else ""
        path = PurePosixPath(model)
        if path.is_absolute() or ".." in path.parts or not model.isprintable():
            hint = "name it as it stands beside the bundle, or leave model out for the bundle itself"
            raise PolicyError(
                f"the model {model!r:.120} lies elsewhere", where=f"{file.where}: {one.name!r}", hint=hint
            )


def pipeline_of_bundle(path: Path) -> PipelineFile | None:
    """Returns the pipeline that a bundle carries, or None.

    Raises:
        MissingInputError: there is no such bundle.
        BundleError: the bundle is malformed or damaged.
        DataError: its pipeline is malformed.
        PolicyError: it names a model that does not stand beside the bundle, as `carried_pipeline` would not write it.
    """
    with open_bundle(path) as bundle:
        if TOML not in bundle.manifest.members:
            return None
        names = _names(bundle)

        def read(name: str) -> bytes:
            if name not in names:
                raise MissingInputError("the bundle does not carry this file", where=f"{path}: {name}")
            return bytes(bundle.member(names[name]))

        beside = FilesBeside(read, path.parent, is_carried=True)
        file = pipeline_from_toml(bytes(bundle.member(TOML)), f"{path}: pipeline.toml", beside)
    _check_models_beside(file)
    return file


def _names(bundle: Bundle) -> dict[str, str]:
    if FILES not in bundle.manifest.members:
        return {}
    names = parse_json(bundle.member(FILES), MAX_FILES_JSON)
    if not isinstance(names, dict) or not all(
        isinstance(member, str) and member in bundle.manifest.members for member in names.values()
    ):
        raise BundleError("does not map names to members", where=f"{bundle.path}: {FILES}")
    return names
