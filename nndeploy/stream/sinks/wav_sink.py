# SPDX-License-Identifier: Apache-2.0
"""Sounds that a pipeline made, one WAV file each in a folder: `<index>_<stem>.wav`.

One field holds samples, (N,) or (N, channels), another one their rate. A record that failed is
`<index>_<stem>.error.json`.

Law: a file appears whole or not at all; no input chooses its name beyond a cleaned stem.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, ClassVar

import numpy as np
import numpy.typing as npt

from nndeploy.errors import DataError
from nndeploy.processors.arrays import floats_from_value, rate_from_value, shape_text
from nndeploy.processors.wav_files import SampleFormat, Sound, bytes_from_sound
from nndeploy.stream.sinks.resumable import Resumables
from nndeploy.stream.sinks.sinks import FolderSink
from nndeploy.values.types import Value


class WavSink(FolderSink):
    """A folder with one WAV file a record."""

    SUFFIXES: ClassVar[tuple[str, ...]] = (".wav",)

    def __init__(
        self,
        path: Path,
        samples: str = "samples",
        rate: str = "rate",
        form: SampleFormat = "pcm16",
        resumables: Resumables | None = None,
    ) -> None:
        """Opens or makes the folder; with `resumables` it may be resumed, and is appended to them.

        Raises:
            CannotCreateError: it cannot be made or written to.
        """
        self._samples, self._rate = samples, rate
        self._form: SampleFormat = form
        super().__init__(path, resumables)

    def _files(self, outputs: Mapping[str, Value]) -> Iterator[tuple[str, Callable[[BinaryIO], object]]]:
        for name in (self._samples, self._rate):
            if name not in outputs:
                raise DataError(f"the record has no field {name!r}", where="sink of sounds")
        sound = Sound(_channels(outputs[self._samples]), rate_from_value(outputs[self._rate]))
        data = bytes_from_sound(sound, self._form)
        yield ".wav", lambda file: file.write(data)


def _channels(value: Value) -> npt.NDArray[np.float32]:
    """Returns samples as (N, channels); those of one channel may have axes of one around them."""
    samples = floats_from_value(value, "samples")
    if sum(size != 1 for size in samples.shape) <= 1:
        return samples.reshape(-1, 1)
    if samples.ndim != 2:
        raise DataError(f"samples must be (N,) or (N, channels), these are {shape_text(value)}", where="sink of sounds")
    return samples
