# SPDX-License-Identifier: Apache-2.0
"""Frames of video files, one record each: the image, upright, its number and its time.

Needs PyAV, the extra `video`. Files may have been written by anybody: the suffix decides which demuxer reads a file,
so none of those that open other files or addresses (playlists) can be reached, and the size of a frame is capped
before one is decoded. A file is decoded in the thread that reads the source; pixels become RGB in the loaders.

Law: every file gives at least one record or error; a packet that cannot be decoded, a frame that a decoder had to make
up in part, those that are built on it, up to the next that stands for itself, and frames that are missing are error
records in their place, and the frames after them go on. So a video of which no record is an error is complete, as far
as its file tells.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from nndeploy.errors import InputError, NndeployError, UnavailableError
from nndeploy.files.whole_files import open_regular, safe_stem
from nndeploy.processors.arrays import Image
from nndeploy.processors.image_files import MAX_PIXELS
from nndeploy.stream.items import Item, failing
from nndeploy.stream.sources.video_timeline import Timeline
from nndeploy.values.types import Value

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
MAX_DAMAGED_PACKETS = 1000
"""Most damaged packets in a row: after more of them the rest of a file is one error, and a connection is given up."""
INTRA = 1
"""The number of a picture of its own (AV_PICTURE_TYPE_I)."""
MADE_UP = "is damaged: a part of it is made up"
LOST = "cannot be decoded: it is built on one that is missing or damaged"


def require_av() -> None:
    """Checks that video can be decoded here.

    Raises:
        UnavailableError: PyAV is not installed.
    """
    try:
        import av  # noqa: F401
    except ImportError as err:
        hint = "pip install 'nndeploy-toolchain[video]'"
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
            for number, found in enumerate(_decoded_frames(container, video, Timeline(container, video))):
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


def _decoded_frames(
    container: "InputContainer", stream: "VideoStream", timeline: Timeline
) -> Iterator["VideoFrame | NndeployError"]:
    """Yields the frames of a file, and an error for what cannot be decoded, or is missing by the times."""
    import av

    damaged, num_damaged, is_spoiled = set[int | None](), 0, False
    for packet in container.demux(stream):
        timeline.expect(packet)
        if packet.is_corrupt:
            damaged.add(packet.pts)
        try:
            frames = packet.decode()
        except av.error.FFmpegError as err:
            num_damaged, is_spoiled = num_damaged + 1, True
            if num_damaged > MAX_DAMAGED_PACKETS:
                raise
            yield InputError(f"cannot be decoded: {err}")
            continue
        num_damaged = 0
        for frame in frames:
            if not isinstance(frame, av.VideoFrame):
                continue
            if gap := timeline.gap_before(frame):
                yield gap
            is_damaged = frame.is_corrupt or frame.pts in damaged
            damaged.discard(frame.pts)
            is_spoiled = is_damaged or (is_spoiled and not stands_for_itself(frame))
            yield InputError(MADE_UP if is_damaged else LOST) if is_spoiled else frame
    if missing := timeline.missing_end():
        yield missing


def stands_for_itself(frame: "VideoFrame") -> bool:
    """Returns whether a frame is built on no other."""
    return frame.key_frame or frame.pict_type == INTRA


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
