# SPDX-License-Identifier: Apache-2.0
"""Images that a pipeline made, one after the other as an MP4 video.

Needs PyAV, the extra `video`. The first image gives the size, rounded down to even numbers as the codec wants; others
are fitted into it on black. A record that failed shows the image before it once more, so that the time goes on.

Law: as many frames as records from the first image on; the file appears whole at the end or not at all.
"""

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nndeploy.errors import DataError, InputOutputError
from nndeploy.files.named_outputs import new_output
from nndeploy.files.whole_files import wrapped_io
from nndeploy.processors.arrays import Image, image_from_value
from nndeploy.processors.builtin.letterbox import Letterbox
from nndeploy.stream.items import Outcome
from nndeploy.stream.sources.video_source import require_av

if TYPE_CHECKING:
    from av.container import OutputContainer
    from av.video.stream import VideoStream


class VideoSink:
    """A video file that appears when the stream ends."""

    def __init__(self, path: Path, field: str = "image", rate_hz: float = 25.0) -> None:
        """Begins the file.

        Raises:
            CannotCreateError: it cannot be made.
            UnavailableError: PyAV is not installed.
        """
        require_av()
        import av

        self._field = field
        self._rate = Fraction(rate_hz).limit_denominator(1001)
        self._stream: VideoStream | None = None
        self._last: Image | None = None
        self._new = new_output(path)
        self._container: OutputContainer = av.open(self._new.file, "w", format="mp4")

    def write(self, outcome: Outcome) -> None:
        """Encodes the image of one record.

        Raises:
            DataError: the field is missing or no image.
        """
        if outcome.outputs is not None:
            if self._field not in outcome.outputs:
                raise DataError(f"the record has no field {self._field!r}", where="sink of video")
            self._last = self._fitted(image_from_value(outcome.outputs[self._field]))
        if self._last is not None:
            self._encode(self._last)

    def finish(self) -> None:
        """Ends the video and gives the file its name; a stream without an image leaves no file."""
        if self._stream is None:
            self._new.discard()
            return
        self._encode(None)
        with _wrapped(self._new.path):
            self._container.close()
        self._new.finish()

    def discard(self) -> None:
        """Removes the file."""
        self._new.discard()

    def _fitted(self, image: Image) -> Image:
        if self._stream is None:
            height, width = (max(side // 2 * 2, 2) for side in image.shape[:2])
            self._begin(width, height)
        assert self._stream is not None
        width, height = self._stream.codec_context.width, self._stream.codec_context.height
        if 0 <= image.shape[0] - height <= 1 and 0 <= image.shape[1] - width <= 1:
            return np.ascontiguousarray(image[:height, :width])
        return Letterbox(width, height, fill=(0, 0, 0))(image)[0]

    def _begin(self, width: int, height: int) -> None:
        stream = self._container.add_stream("libx264", rate=self._rate)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.options = {"crf": "20", "preset": "veryfast"}
        self._stream = stream

    def _encode(self, image: Image | None) -> None:
        """Encodes one image; None ends the stream."""
        import av

        assert self._stream is not None
        frame = av.VideoFrame.from_ndarray(image, format="rgb24") if image is not None else None
        with _wrapped(self._new.path):
            for packet in self._stream.encode(frame):
                self._container.mux(packet)


class _wrapped(wrapped_io):  # noqa: N801 - a context manager reads like a function
    """Turns an error of the encoder into one that names the file."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        import av

        if isinstance(error, av.error.FFmpegError) and not isinstance(error, OSError):
            raise InputOutputError(f"the video cannot be written: {error}", where=str(self._path)) from error
        super().__exit__(kind, error, trace)
