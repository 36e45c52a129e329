# SPDX-License-Identifier: Apache-2.0
"""Video files as browsers, OBS, phones, motion cameras and screen recorders write them, made by PyAV.

Frames are images of a moving patch. Codecs and containers are those of PyAV's own build.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

GROUP = 12
STEADY = tuple(range(0, 960, 40))
PAUSES = (*range(0, 320, 40), *range(640, 960, 40), *range(9000, 9320, 40))
VARIABLE = (*range(0, 132, 33), 430, 447, 463, 900, 905, 910, 1500, 2600, 2633, 2650, 3900, 3910, 9000, 9100)
"""Times of frames in ms."""
CLUSTER = re.compile(bytes.fromhex("1f43b675"))
FRAGMENTS = {"movflags": "frag_keyframe+empty_moov+default_base_moof"}
REALTIME = {"deadline": "realtime", "cpu-used": "8"}
X265 = {"preset": "ultrafast", "x265-params": "log-level=none:pools=1"}
SUPERFAST = {"preset": "superfast"}


@dataclass(frozen=True, eq=False)
class Recording:
    """How a file is made; `change` changes its bytes, `num` frames are left of it."""

    suffix: str
    codec: str
    options: Mapping[str, str] = field(default_factory=dict)
    times: Sequence[int] = STEADY
    container: Mapping[str, str] = field(default_factory=dict)
    pix_fmt: str = "yuv420p"
    is_seekable: bool = True
    has_sound: bool = False
    rotation: int = 0
    change: Callable[[bytes], bytes] = bytes
    num: int | None = None
    size: tuple[int, int] = (64, 96)

    def write(self, path: Path) -> bytes:
        """Writes the file, and returns its bytes."""
        pipe, kind = _Pipe(), FORMATS[self.suffix]
        with (
            _usual_priority(),
            av.open(str(path) if self.is_seekable else pipe, "w", format=kind, options=dict(self.container)) as out,
        ):
            # AVI and MPEG-2 know steady rates alone
            base = Fraction(1, 25 if self.suffix in (".avi", ".mpg") or self.codec == "mpeg2video" else 1000)
            stream = out.add_stream(self.codec, rate=25)
            (stream.height, stream.width), stream.pix_fmt, stream.gop_size = self.size, self.pix_fmt, GROUP
            stream.options, stream.codec_context.time_base = dict(self.options), base
            if self.rotation:
                stream.set_display_rotation(self.rotation)
            sound = out.add_stream("aac", rate=16_000) if self.has_sound else None
            for number, time in enumerate(self.times):
                frame = av.VideoFrame.from_ndarray(moving_image(number, self.size), format="rgb24")
                frame.pts, frame.time_base = round(time / 1000 / base), base
                out.mux(stream.encode(frame))
            out.mux(stream.encode(None))
            if sound is not None:
                out.mux([*sound.encode(_silence(num_samples=80_000)), *sound.encode(None)])
        data = self.change(path.read_bytes() if self.is_seekable else b"".join(map(bytes, pipe.parts)))
        path.write_bytes(data)
        return data


@contextmanager
def _usual_priority() -> Iterator[None]:
    """Takes back what SVT-AV1 does as root: it gives the thread that encodes the highest real-time priority."""
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


FORMATS = {
    ".mp4": "mp4", ".mov": "mov", ".mkv": "matroska", ".webm": "webm", ".avi": "avi", ".ts": "mpegts", ".mpg": "vob",
}  # fmt: skip


class _Pipe:
    """What a writer cannot come back to: sizes, duration and index stay unknown."""

    def __init__(self) -> None:
        self.parts = list[bytes]()
        self.write = self.parts.append


def _silence(num_samples: int) -> av.AudioFrame:
    frame = av.AudioFrame.from_ndarray(np.zeros((1, num_samples), np.float32), format="fltp", layout="mono")
    frame.sample_rate = 16_000
    return frame


def moving_image(number: int, size: tuple[int, int]) -> np.ndarray:
    """Returns an image that is like no other: a patch moves over a ground that grows brighter."""
    height, width = size
    image = np.full((height, width, 3), 20 + 2 * number % 200, np.uint8)
    left = 3 * number % (width - 32)
    image[8:32, left : left + 32] = np.random.default_rng(0).integers(0, 255, (24, 32, 3), np.uint8)
    return image


def without_sizes(data: bytes) -> bytes:
    """Returns WebM whose clusters do not say how long they are, as those of Chromium."""
    changed = bytearray(data)
    for found in CLUSTER.finditer(data):
        num_bytes = 9 - data[found.end()].bit_length()
        changed[found.end() : found.end() + num_bytes] = ((2 << 7 * num_bytes) - 1).to_bytes(num_bytes)
    return bytes(changed)


def from_the_middle(data: bytes) -> bytes:
    """Returns a transport stream from the second tenth on: its first key frame is missing."""
    return data[len(data) // 10 // 188 * 188 :]


RECORDINGS = {
    "Chromium, VP8": Recording(".webm", "libvpx", REALTIME, VARIABLE, is_seekable=False, change=without_sizes),
    "Chromium, VP9": Recording(".webm", "libvpx-vp9", REALTIME, PAUSES, is_seekable=False, change=without_sizes),
    "Firefox, VP8": Recording(".webm", "libvpx", REALTIME, VARIABLE, {"live": "1"}),
    "browser, AV1": Recording(".webm", "libsvtav1", {"preset": "12"}, VARIABLE, is_seekable=False),
    "browser, MP4": Recording(".mp4", "libx264", {"tune": "zerolatency"}, VARIABLE, FRAGMENTS, is_seekable=False),
    "Safari, fragment a frame": Recording(
        ".mp4", "libx264", {"profile": "baseline"}, PAUSES, {"movflags": "frag_every_frame+empty_moov"}
    ),
    "browser, AV1 in MP4": Recording(".mp4", "libsvtav1", {"preset": "12"}, PAUSES, FRAGMENTS),
    "hidden frames of VP8": Recording(".webm", "libvpx", {"auto-alt-ref": "1", "lag-in-frames": "10", "cpu-used": "5"}),
    "hidden frames of VP9": Recording(".webm", "libvpx-vp9", {"lag-in-frames": "10", "cpu-used": "5"}, PAUSES),
    "OBS, MKV": Recording(".mkv", "libx264", {"preset": "veryfast", "bf": "2"}, has_sound=True),
    "OBS, MKV, paused": Recording(".mkv", "libx264", {}, PAUSES),
    "OBS, MKV, killed": Recording(".mkv", "libx264", {}, PAUSES, is_seekable=False),
    "OBS, fragments": Recording(".mp4", "libx264", {}, PAUSES, FRAGMENTS, has_sound=True),
    "OBS, MOV": Recording(".mov", "libx264", {"x264-params": "open-gop=1"}, PAUSES),
    "OBS, H.265": Recording(".mkv", "libx265", X265, PAUSES),
    "phone, variable rate": Recording(".mp4", "libx264", {}, VARIABLE, has_sound=True),
    "phone, upright": Recording(".mp4", "libx264", {"bf": "3"}, VARIABLE, rotation=90),
    "phone, faststart": Recording(".mp4", "libx264", {}, VARIABLE, {"movflags": "faststart"}),
    "phone, H.265": Recording(".mov", "libx265", X265, VARIABLE, rotation=-90),
    "phone, MPEG-4": Recording(".mp4", "mpeg4", {}, VARIABLE),
    "motion camera, TS": Recording(".ts", "libx264", {"tune": "zerolatency"}, PAUSES),
    "motion camera, TS, B-frames": Recording(".ts", "libx264", {}, PAUSES),
    "motion camera, TS, H.265": Recording(".ts", "libx265", X265, PAUSES),
    "motion camera, AVI": Recording(".avi", "mjpeg", {}, PAUSES, pix_fmt="yuvj420p"),
    "motion camera, MPEG-4": Recording(".avi", "mpeg4", {"bf": "2"}, PAUSES),
    "motion camera, MKV": Recording(".mkv", "mjpeg", {}, PAUSES, pix_fmt="yuvj420p"),
    "motion camera, refresh": Recording(".ts", "libx264", {"x264-params": "intra-refresh=1"}, VARIABLE),
    "files joined": Recording(".ts", "libx264", SUPERFAST, change=lambda data: 2 * data, num=2 * len(STEADY)),
    "begun in a group": Recording(".ts", "libx264", SUPERFAST, change=from_the_middle, num=len(STEADY) - GROUP),
    "H.264 in AVI": Recording(".avi", "libx264"),
    "H.264 in AVI, pauses": Recording(".avi", "libx264", {"preset": "slow"}, PAUSES),
    "H.264 in AVI, fast": Recording(".avi", "libx264", SUPERFAST, PAUSES),
    "interlaced": Recording(".ts", "libx264", {"x264-params": "tff=1"}, PAUSES),
    "DVD": Recording(".mpg", "mpeg2video", {"bf": "2"}),
    "DVB": Recording(".ts", "mpeg2video", {"bf": "2"}, PAUSES),
    "screen, ZMBV": Recording(".avi", "zmbv", {}, PAUSES, pix_fmt="bgr0"),
    "screen, QuickTime": Recording(".mov", "qtrle", {}, VARIABLE, pix_fmt="rgb24"),
    "screen, 4:4:4": Recording(".mkv", "libx264", {"x264-params": "cqm=jvt"}, VARIABLE, pix_fmt="yuv444p"),
    "archive": Recording(".mkv", "ffv1", {}, VARIABLE),
    "camera, ProRes": Recording(".mov", "prores_ks", {}, STEADY, pix_fmt="yuv422p10le"),
}
