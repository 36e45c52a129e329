# SPDX-License-Identifier: Apache-2.0
"""What the texts of a compile's options mean; what reads models or arrays is imported when it is needed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from nndeploy.errors import BundleError, DataError, UsageError
from nndeploy.options.texts import assignments_in, bytes_in, names_in, share_in
from nndeploy.plugin.backend_names import PLUGINS

if TYPE_CHECKING:
    from nndeploy.bundle.manifest import ImageInput
    from nndeploy.frontend.shape_texts import ShapeSpec
    from nndeploy.stream.pipeline.bundled_pipeline import CarriedPipeline
    from nndeploy.target.target import Target
    from nndeploy.values.types import Value

LEAST_MEMORY_BYTES = 512 << 20


def shapes(texts: Sequence[str]) -> "Mapping[str, ShapeSpec]":
    """Returns input or symbol -> sizes; raises a UsageError."""
    from nndeploy.frontend.shape_texts import parse_shape_options

    return parse_shape_options(texts)


def samples(folder: str) -> "list[Mapping[str, Value]]":
    """Returns the samples of a folder, or of one .npz file; raises a MissingInputError or InputError."""
    from nndeploy.checking.samples import samples_from_folder

    return list(samples_from_folder(Path(folder)))


def image_input(path: str) -> "ImageInput":
    """Returns what a TOML file says; raises a DataError."""
    from nndeploy.bundle.manifest_json import image_input_from_json
    from nndeploy.files.toml_file import toml_from_file

    data = {"labels": [], **toml_from_file(Path(path), "image description")}
    try:
        return image_input_from_json(data)
    except BundleError as err:
        raise DataError(err.what, where=": ".join(filter(None, (path, err.where))), hint=err.hint) from err


def pipeline(path: str) -> "CarriedPipeline":
    """Returns the pipeline at a path; raises what `carried_pipeline` raises."""
    from nndeploy.stream.pipeline.bundled_pipeline import carried_pipeline

    return carried_pipeline(Path(path))


def backends(texts: str | Iterable[str]) -> tuple[str, ...]:
    """Returns the names of backends, separated by commas, of one or several texts; in whatever case they were typed."""
    return tuple(map(PLUGINS.spelled, names_in(texts)))


def pins(texts: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Returns (glob of node names, backend) of each; raises a UsageError."""
    assigned = assignments_in("--pin", "GLOB=BACKEND", "'Conv_*=onnxruntime'", splits_last=True)(texts)
    return tuple((glob, PLUGINS.spelled(name)) for glob, name in assigned)


def requirements(texts: Iterable[str]) -> dict[str, float]:
    """Returns backend -> share of compute; raises a UsageError."""
    assigned = assignments_in("--require", "BACKEND=SHARE", "openvino=95%")(texts)
    return {PLUGINS.spelled(name): share_in("--require")(share) for name, share in assigned}


def targets(texts: Iterable[str]) -> "tuple[Target, ...]":
    """Returns the boxes that texts name; raises what `target_of` raises."""
    from nndeploy.target.known_targets import target_of

    found = map(target_of, texts)
    return tuple(
        replace(one, libraries=tuple((PLUGINS.spelled(name), version) for name, version in one.libraries))
        for one in found
    )


def rooted_target(text: str) -> str:
    """Returns the same box, its file by an absolute path; raises a UsageError where no box has the name."""
    from nndeploy.target.known_targets import absolute

    return absolute(text)


def memory_in(option: str) -> Callable[[str], int]:
    """Returns a function that reads the bytes that a whole compile may take; it raises a UsageError."""
    size = bytes_in(option)

    def limit(text: str) -> int:
        if (found := size(text)) < LEAST_MEMORY_BYTES:
            raise UsageError(f"{option}: {text!r} is not enough to compile any model", hint="at least 512MiB")
        return found

    return limit
