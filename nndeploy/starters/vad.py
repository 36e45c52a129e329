# SPDX-License-Identifier: Apache-2.0
"""From a sound to the times at which somebody speaks: Silero's voice activity detector, version 5 and later."""

from collections.abc import Mapping

from nndeploy.errors import DataError
from nndeploy.starters.model_folder import ModelFolder, quoted
from nndeploy.values.types import Dim, TensorType

RATE_HZ = 16000
WINDOW, CONTEXT = 512, 64
"""What the model hears at a time and what of the time before stands in front of it, in samples."""
STATE: tuple[Dim, ...] = (2, 1, 128)
"""The sizes of the state of one sound."""


def vad(files: ModelFolder) -> str:
    """Returns the TOML.

    Raises:
        DataError: the model is no such detector.
    """
    sound, state = _one(files, files.inputs, (1, CONTEXT + WINDOW)), _one(files, files.inputs, STATE)
    speech, after = _one(files, files.outputs, (1, 1)), _one(files, files.outputs, STATE)
    others = [name for name in files.inputs if name not in (sound, state)]
    if len(others) > 1 or any(not _may_be_rate(files.inputs[name]) for name in others):
        raise _misfit(files)
    rates = [f"{quoted(name)} = {quoted(name)}" for name in others]
    steps = "".join(f"    {_rate(name, files.inputs[name])}\n" for name in others)
    return f"""\
# Says when somebody speaks, with Silero's voice activity detector; it remembers from window to window.
#   nndeploy compile {files.model} --pipeline {files.out} -o vad.nnd
#   nndeploy run vad.nnd --input recordings/ --output segments.jsonl

[source]
kind = "wav"    # of any rate; for arrays: kind = "arrays", fields = ["samples", "rate"]

[[level]]

[[level.pipeline]]
name = "cut"
runners = 0

[[level.pipeline.loader]]
workers = 2
steps = [
    {{ use = "resample", rate = {RATE_HZ} }},
    {{ use = "windows", size = {WINDOW}, context = {CONTEXT}, batch = true }},
{steps}]

[[level]]

[[level.pipeline]]
name = "listen"
runners = 2    # recordings that are heard at once
each = "windows"
part = "window"
inputs = {{ {", ".join([f'{quoted(sound)} = "window"', *rates])} }}
outputs = {{ {quoted(speech)} = "probability" }}
carry = {{ {quoted(after)} = {quoted(state)} }}

[[level]]

[[level.pipeline]]
name = "times"
runners = 0

[[level.pipeline.post]]

[[level.pipeline.post.steps]]
use = "voice-segments"
in = ["probability", "samples", "rate"]
hop-ms = {1000 * WINDOW // RATE_HZ}
threshold = 0.5
end-threshold = 0.35
min-speech-ms = 250
min-silence-ms = 100
pad-ms = 30

[[sink]]
kind = "json-lines"
fields = ["segments"]    # begin and end of each, in seconds
"""


def _one(files: ModelFolder, values: Mapping[str, TensorType], sizes: tuple[Dim, ...]) -> str:
    """Returns the name of the only float32 value that may have these sizes.

    Raises:
        DataError: there is none, or there are several.
    """
    found = [name for name, kind in values.items() if kind.dtype == "float32" and _may_be(kind.shape, sizes)]
    if len(found) != 1:
        raise _misfit(files)
    return found[0]


def _may_be(shape: tuple[Dim, ...] | None, sizes: tuple[Dim, ...]) -> bool:
    if shape is None or len(shape) != len(sizes):
        return False
    return all(not isinstance(one, int) or one == size for one, size in zip(shape, sizes, strict=True))


def _may_be_rate(kind: TensorType) -> bool:
    return kind.dtype == "int64" and kind.shape in ((), (1,))


def _rate(name: str, kind: TensorType) -> str:
    value = f"[{RATE_HZ}]" if kind.shape else f"{RATE_HZ}"
    return f'{{ use = "constant", value = {value}, dtype = "int64", out = [{quoted(name)}] }},'


def _misfit(files: ModelFolder) -> DataError:
    shown = ", ".join(f"{name!r} {kind}" for name, kind in (*files.inputs.items(), *files.outputs.items()))
    wanted = f"float32[1,{CONTEXT + WINDOW}] and a state float32[{','.join(map(str, STATE))}] and gives float32[1,1]"
    return DataError(
        f"is no voice activity detector of Silero's, which takes {wanted} and the next state; it has {shown}",
        where=str(files.model), hint="write the pipeline by hand: nndeploy help processors",
    )  # fmt: skip
