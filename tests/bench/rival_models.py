# SPDX-License-Identifier: Apache-2.0
"""Models as rivals' converters take them, and what these made of them, kept for the next run of the bench.

`prepared` runs in the bench, `kept` inside a child of `interleaved`, in the environment of a rival. A conversion takes
minutes where a race takes seconds: its result, or its refusal, stays until the model or the library changes.
"""

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from commands import ran
from interleaved import Array, EngineRefusedError

CONVERT_SECONDS = 600.0
_REFUSED = "refused.txt"


class _TooLongError(EngineRefusedError):
    """A converter came to no end, which on a quieter machine it may: this is not kept."""


def prepared(path: Path, inputs: Mapping[str, Array], folder: Path) -> Path:
    """Returns a model as users of converters prepare it: sizes fixed to those of the inputs, constants folded.

    ONNX Runtime folds them, with its basic optimisations: what these write is plain ONNX. Models of `ANY_SIZES` are
    taken as they are. The file stays in `folder`; beside it lies the model `as_it_is`, for who folds by himself.
    """
    import onnx
    import onnxruntime
    from model_sets import ANY_SIZES, with_constant_weights

    sizes = {name: array.shape for name, array in inputs.items()}
    digest = hashlib.sha256(path.read_bytes() + repr(sizes).encode()).hexdigest()[:12]
    made = folder / f"{path.stem}-{digest}.onnx"
    if made.exists():
        return made
    shutil.copy(path, as_it_is(made))
    if path.stem in ANY_SIZES:
        return Path(shutil.copy(path, made))
    model = with_constant_weights(path)
    for value in model.graph.input:
        value.type.tensor_type.shape.Clear()
        for size in sizes[value.name]:
            value.type.tensor_type.shape.dim.add().dim_value = size
    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    with tempfile.TemporaryDirectory(dir=folder) as name:
        whole = Path(name) / made.name
        settings.log_severity_level, settings.optimized_model_filepath = 4, str(whole)
        onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
        folded = onnx.load(whole)
        if not {node.domain for node in folded.graph.node} - {"", "ai.onnx"}:
            model = folded
        _without_allowzero(model)
        onnx.save(model, whole)
        whole.rename(made)
    return made


def as_it_is(prepared: Path) -> Path:
    return prepared.with_suffix(".as-it-is.onnx")


def _without_allowzero(model: Any) -> None:
    """Leaves an attribute out that changes nothing where no size is zero, and that few converters know."""
    for node in model.graph.node:
        for attribute in [one for one in node.attribute if one.name == "allowzero"]:
            node.attribute.remove(attribute)


def kept(folder: str, engine: str, model: str, convert: Callable[[Path, Path], None]) -> Path:
    """Returns the folder that `convert(model, folder)` filled, now or before; `engine` has its version.

    Raises EngineRefusedError, now or again, where it did.
    """
    place = Path(folder) / f"{Path(model).stem}-{engine.replace(' ', '-')}"
    if not place.exists():
        with tempfile.TemporaryDirectory(dir=folder) as name:
            made = Path(name) / place.name
            made.mkdir()
            try:
                convert(Path(model), made)
            except _TooLongError:
                raise
            except EngineRefusedError as err:
                (made / _REFUSED).write_text(str(err), encoding="utf-8")
            made.rename(place)
    if (place / _REFUSED).exists():
        raise EngineRefusedError((place / _REFUSED).read_text(encoding="utf-8"))
    return place


def converted(command: Sequence[object], made: Path, folder: Path) -> None:
    """Runs a converter in a folder, which writes `made`; the last error that it names is the reason of a refusal."""
    done = ran(command, CONVERT_SECONDS, cwd=folder)
    if done.code is None:
        raise _TooLongError(f"{done.name}: {done.last_words}")
    if done.code != 0 or not made.exists():
        errors = [line for line in f"{done.out}\n{done.err}".splitlines() if "Error: " in line or " error: " in line]
        reason = errors[-1].rpartition(" error: ")[2].strip() if errors else done.last_words
        raise EngineRefusedError(f"{done.name} ended with {done.code}: {reason[:120]}")
