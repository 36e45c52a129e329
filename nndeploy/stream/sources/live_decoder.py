# SPDX-License-Identifier: Apache-2.0
"""The frames of a live video of which parts get lost: what is given out is what the camera saw.

In come packets, out come frames, and an error for each picture that is lost, damaged, or built on one of these. From
then on the decoder begins anew, as at the start, and goes on with the first picture that stands for itself: the next
key frame, or the end of a refresh that goes over several. Pictures before the first such one of a connection are only
counted: a camera that is looked at from the middle has lost nothing.

Frames that are shown before one on which they may be built (B frames) wait for it. What nothing tells is not seen: that
a picture is missing on which no other is built, or a whole group of pictures (the times of frames show both); that one
of the several pictures of a refresh is damaged; and that what came of a picture can be decoded to its end and is yet
damaged.
"""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from nndeploy.errors import InputError, NndeployError
from nndeploy.stream.sources.h264_references import References
from nndeploy.stream.sources.readers import SourceFigures
from nndeploy.stream.sources.video_source import LOST, MADE_UP, MAX_DAMAGED_PACKETS, stands_for_itself

if TYPE_CHECKING:
    from av import Packet, VideoFrame
    from av.video.stream import VideoStream

MAX_HELD = 16
"""So many pictures a decoder may hold back for those that are shown before them (H.264, A.3.1)."""
BUILT_ON_A_LATER_ONE = 3
"""The number of a picture that may be built on one which is shown after it (AV_PICTURE_TYPE_B)."""


class LiveDecoder:
    """Decodes the video of one connection."""

    def __init__(self, stream: "VideoStream", figures: SourceFigures) -> None:
        """`figures` counts the pictures before the first one that can be decoded."""
        self._codec = stream.codec_context
        self._figures = figures
        self._references = References(self._codec.extradata) if self._codec.name == "h264" else None
        # these decoders give no frame until one stands for itself; of others such a one is waited for here
        self._knows_itself = self._codec.name in ("h264", "hevc")
        # of H.265 the decoder also leaves out what is built on a missing picture, without a word
        self._may_leave_out = self._codec.name == "hevc"
        self._has_begun = self._is_whole = False
        self._is_spoiled = not self._knows_itself
        """Whether frames are built on one that is missing or damaged, until one stands for itself."""
        self._damaged = set[int | None]()
        self._waiting = list[int | None]()
        """The times of packets of which it is not known yet whether a frame comes of them."""
        self._unsure = list["VideoFrame"]()
        """Frames that may be built on the next one."""
        self._num_failed = 0

    def frames(self, packet: "Packet[Any]") -> "Iterator[VideoFrame | NndeployError]":
        """Yields what is known after a packet; the last of a stream is an empty one.

        Raises:
            av.error.FFmpegError: none of many packets could be decoded.
        """
        import av

        if packet.size and self._references is not None and self._references.is_one_missing_before(memoryview(packet)):
            yield from self._anew()
            if not self._references.stands_for_itself:  # whatever the messages beside it say: they may be another's
                yield from self._lost(LOST)
                return
        if packet.is_corrupt:
            self._damaged.add(packet.pts)
        try:
            frames = packet.decode()
        except av.error.FFmpegError as err:
            self._num_failed += 1
            if self._num_failed > MAX_DAMAGED_PACKETS:
                raise
            self._is_spoiled = True
            yield from self._anew()
            yield from self._lost(f"cannot be decoded: {err}")
            return
        self._num_failed = 0
        if packet.size and self._knows_itself and (self._may_leave_out or not self._is_whole):
            self._waiting.append(packet.pts)
        yield from self._shown(frames)
        if self._is_spoiled:
            yield from self._anew()
        if not packet.size:
            yield from self._sure()
        while len(self._waiting) > (MAX_HELD if packet.size and self._codec.has_b_frames else 0):
            self._waiting.pop(0)
            yield from self._lost(LOST)

    def _shown(self, frames: "list[VideoFrame]") -> "Iterator[VideoFrame | NndeployError]":
        for frame in frames:
            for _ in range(self._num_left_out_before(frame)):
                yield from self._lost(LOST)
            if frame.is_corrupt or frame.pts in self._damaged:
                self._damaged.discard(frame.pts)
                self._is_spoiled = True
                yield from self._sure()
                yield from self._lost(MADE_UP)
            elif self._is_spoiled and not stands_for_itself(frame):
                yield from self._lost(LOST)
            else:
                self._is_spoiled, self._is_whole, self._has_begun = False, True, True
                self._unsure.append(frame)
                if frame.pict_type != BUILT_ON_A_LATER_ONE:
                    yield from self._sure()

    def _sure(self) -> "Iterator[VideoFrame | NndeployError]":
        """Yields the frames that waited for the next one, or errors where that is damaged."""
        unsure, self._unsure = self._unsure, []
        for frame in unsure:
            if self._is_spoiled:
                yield from self._lost(LOST)
            else:
                yield frame

    def _num_left_out_before(self, frame: "VideoFrame") -> int:
        """Returns how many pictures would have been shown before this frame, and were not."""
        if frame.pts is None:  # FFmpeg gives the first picture of a connection no time now and then
            self._waiting = self._waiting[1:] if None in self._waiting[:1] else self._waiting
            return 0
        num_left_out = sum(time is None or time < frame.pts for time in self._waiting)
        self._waiting = [time for time in self._waiting if time is not None and time > frame.pts]
        return num_left_out

    def _anew(self) -> "Iterator[VideoFrame | NndeployError]":
        """Has the decoder begin anew; yields what it held back."""
        import av

        if not self._knows_itself:
            return
        if self._codec.has_b_frames:
            with contextlib.suppress(av.error.FFmpegError):
                yield from self._shown(self._codec.decode(None))
        yield from self._sure()
        for _ in self._waiting:
            yield from self._lost(LOST)
        self._waiting.clear()
        self._codec.flush_buffers()
        self._is_spoiled = self._is_whole = False

    def _lost(self, reason: str) -> Iterator[NndeployError]:
        if self._has_begun:
            yield InputError(reason)
        else:
            self._figures.num_skipped += 1
