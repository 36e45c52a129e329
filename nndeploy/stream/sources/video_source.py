# SPDX-License-Identifier: Apache-2.0
"""Frames of video files, one record each: the image, upright, its number and its time.

Needs PyAV, the extra `video`. Files may have been written by anybody: the suffix decides which demuxer reads a file,
so none of those that open other files or addresses (playlists) can be reached, and the size of a frame is capped
before one is decoded. A file is decoded in the thread that reads the source; pixels become RGB in the loaders.

Law: every file gives at least one record or error. What FFmpeg reports as damaged, and a file that is shorter than it
says, are error records; a time without frames is none.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from nndeploy.errors import InputError, NndeployError, UnavailableError
from nndeploy.files.image_files import MAX_PIXELS
from nndeploy.files.whole_files import open_regular, safe_stem
from nndeploy.processors.arrays import Image
from nndeploy.stream.items import Item, failing
from nndeploy.stream.sources.readers import SourceFigures
from nndeploy.stream.sources.video_decoder import VideoDecoder
from nndeploy.stream.sources.video_end import missing_bytes
from nndeploy.values.types import Value
from nndeploy.version import install_command

if TYPE_CHECKING:
    from av import VideoFrame
    from av.container import InputContainer
    from av.video.stream import VideoStream

DEMUXERS = {
    ".mp4": "mov", ".m4v": "mov", ".mov": "mov", ".mkv": "matroska", ".webm": "matroska", ".avi": "avi",
    ".ts": "mpegts", ".mpg": "mpeg", ".mpeg": "mpeg",
}  # fmt: skip
SUFFIXES = tuple(DEMUXERS)
MAX_FILE_BYTES = 1 << 40


def require_av() -> None:
    """Checks that video can be decoded here.

    Raises:
        UnavailableError: PyAV is not installed.
    """
    try:
        import av  # noqa: F401
    except ImportError as err:
        hint = install_command("video")
        raise UnavailableError("video needs the package av, which is not installed", hint=hint) from err


def frames_of(path: Path, start: int) -> Iterator[Item]:
    """Yields the frames of a video file as items from index `start` on."""
    require_av()
    import av

    stem = safe_stem(path.stem)
    index = start
    try:
        with open_regular(path, MAX_FILE_BYTES) as file, _opened(path, file) as container:
            video = video_stream_of(container, str(path))
            for number, found in enumerate(_found_in(file, container, video, DEMUXERS[path.suffix.lower()])):
                yield frame_item(index, str(path), stem, number, found)
                index += 1
            if index == start:
                raise InputError("holds no frames", where=str(path))
    except NndeployError as err:
        yield Item(index, str(path), stem, failing(err))
    except (av.error.FFmpegError, OSError, ValueError) as err:
        error = InputError(f"is damaged: {err}", where=str(path))
        yield Item(index, str(path), stem, failing(error))


def _opened(path: Path, file: BinaryIO) -> "InputContainer":
    import av

    demuxer = DEMUXERS.get(path.suffix.lower())
    if demuxer is None:
        raise InputError("is no video file that is taken", where=str(path), hint=f"known: {', '.join(SUFFIXES)}")
    try:
        return av.open(file, "r", format=demuxer)
    except (av.error.FFmpegError, OSError, ValueError) as err:
        raise InputError(f"is no {path.suffix} video, or damaged: {err}", where=str(path)) from err


def video_stream_of(container: "InputContainer", where: str, *, is_live: bool = False) -> "VideoStream":
    """Returns the first video of a container.

    A live one is decoded by one thread: several would hold frames back, or not look for what is missing of a picture
    (FFmpeg's `enable_er` of H.264 is off for threads that share a picture).

    Raises:
        InputError: there is none, or it is of a kind that is not known, or its frames are too large.
    """
    if not container.streams.video:
        raise InputError("holds no video", where=where)
    stream = container.streams.video[0]
    if stream.codec_context is None:  # PyAV's types do not say so
        raise InputError("holds video of a kind that is not known", where=where)
    width, height = stream.codec_context.width, stream.codec_context.height
    if width * height > MAX_PIXELS:
        raise InputError(f"has frames of {width} x {height} pixels, more than {MAX_PIXELS}", where=where)
    if is_live:
        stream.codec_context.thread_count = 1
    else:
        stream.thread_type = "AUTO"
    return stream


def _found_in(
    file: BinaryIO, container: "InputContainer", video: "VideoStream", demuxer: str
) -> Iterator["VideoFrame | NndeployError"]:
    decoder, clock = VideoDecoder(video, SourceFigures("")), _AviClock(video.start_time or 0)
    for packet in container.demux(video):
        for found in decoder.frames(packet):
            if demuxer == "avi" and not isinstance(found, NndeployError):
                clock.set_time(found)
            yield found
    if missing := missing_bytes(file, demuxer):
        yield InputError(f"the end is missing: the file is {missing} bytes shorter than it says")


class _AviClock:
    """Times of frames in AVI, which stores the order of decoding alone; FFmpeg takes it for that of showing."""

    def __init__(self, start: int) -> None:
        self._next = start
        self._delay: int | None = None

    def set_time(self, frame: "VideoFrame") -> None:
        """Gives the next frame the time of the packet that completed it, less the delay of the first one."""
        place = self._next if frame.dts is None else frame.dts
        if self._delay is None:
            self._delay = place - self._next
        frame.pts, self._next = place - self._delay, place + 1


def frame_item(index: int, where: str, stem: str, number: int, found: "VideoFrame | NndeployError") -> Item:
    """Returns the item of a frame, or of what is there in place of one; its number and time need no reading."""
    origin, own_stem = f"{where} frame {number}", f"{stem}-{number:06d}"
    if isinstance(found, NndeployError):
        return Item(index, origin, own_stem, failing(found))
    known = {"frame": number, "seconds": found.time or 0.0}
    return Item(index, origin, own_stem, partial(_fields, found, number), known)


def _fields(frame: "VideoFrame", number: int) -> dict[str, Value]:
    if frame.width * frame.height > MAX_PIXELS:
        raise InputError(f"has {frame.width} x {frame.height} pixels, more than {MAX_PIXELS}")
    return {"image": image_from_frame(frame), "frame": number, "seconds": frame.time or 0.0}


def image_from_frame(frame: "VideoFrame") -> Image:
    """Returns the pixels of a frame, turned as the file says."""
    pixels = np.asarray(frame.to_ndarray(format="rgb24"), np.uint8)
    quarters = round(frame.rotation / 90) % 4
    return np.ascontiguousarray(np.rot90(pixels, quarters)) if quarters else pixels
