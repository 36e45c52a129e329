# SPDX-License-Identifier: Apache-2.0
"""Decodes the video of a file or a live connection: packets in, frames and errors out.

What FFmpeg reports as damaged is an error, and so is each frame after it up to the next one that depends on no other.
FFmpeg reports packets that were cut or that its demuxer marks, packets that its decoder refuses, and frames that the
decoder had to conceal in part. A picture that is missing as a whole is seen of H.265, and of H.264 in transport streams
and RTP by its number. Damage that can be decoded is not seen. A time without frames is no damage: motion cameras and
screen recorders write none while nothing moves.

A recording or a connection may begin between two key frames: frames before the first key frame are skipped.

Source: AV_CODEC_FLAG_OUTPUT_CORRUPT and AVFrame.flags (libavcodec); after a flush the decoders of H.264 and H.265 mark
frames as corrupt until a key frame, or the end of an intra refresh, has made them whole.
"""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from nndeploy.errors import InputError
from nndeploy.stream.sources.frame_numbers import FrameNumbers
from nndeploy.stream.sources.readers import SourceFigures

if TYPE_CHECKING:
    from av import Packet, VideoFrame
    from av.video.stream import VideoStream

MAX_DAMAGED_PACKETS = 1000
"""Most packets in a row that cannot be decoded: after more of them a file or connection is given up."""
INTRA, BIDIRECTIONAL = 1, 3
"""Frames that depend on no other, and those that may depend on the next one (AV_PICTURE_TYPE_I and _B)."""
OUTPUT_CORRUPT = 1 << 3
"""AV_CODEC_FLAG_OUTPUT_CORRUPT"""
DAMAGED = "cannot be decoded: it, or a frame that it depends on, is damaged or incomplete"


class VideoDecoder:
    """Decodes one video; `figures` counts what was skipped before its first key frame."""

    def __init__(self, stream: "VideoStream", figures: SourceFigures) -> None:
        self._figures = figures
        self._codec = stream.codec_context
        self._codec.flags |= OUTPUT_CORRUPT
        is_annex_b = self._codec.name == "h264" and (self._codec.extradata or b"")[:1] != b"\1"
        self._numbers = FrameNumbers(self._codec.extradata) if is_annex_b else None
        self._marks_whole_packets = is_annex_b and stream.container.format.name != "avi"
        """Whether the demuxer also marks the packet before a joint (transport streams, RTP), which may be whole."""
        self._marks_recovery = self._codec.name in ("h264", "hevc")
        self._has_begun = False
        self._is_damaged = True
        """Whether no whole frame has come since the last damage."""
        self._holds_damage = False
        """Whether the decoder would go on from a damaged frame."""
        self._needs_key = False
        """Whether only a key frame is known to be whole."""
        self._num_refused = 0
        self._held = list["VideoFrame"]()
        """Frames that may depend on the next one."""

    def frames(self, packet: "Packet[Any]") -> "Iterator[VideoFrame | InputError]":
        """Yields what a packet completes, and an error for each frame that is damaged; the last packet is empty.

        Raises:
            av.error.FFmpegError: none of many packets could be decoded.
        """
        for found in self._found(packet):
            if isinstance(found, InputError):
                yield from (InputError(DAMAGED) for _ in self._held)
                self._held.clear()
                if self._has_begun:
                    yield found
                else:
                    self._figures.num_skipped += 1
            elif found.pict_type == BIDIRECTIONAL:
                self._held.append(found)
            else:
                yield from self._released()
                yield found
        if not packet.size:
            yield from self._released()

    def _released(self) -> "Iterator[VideoFrame]":
        yield from self._held
        self._held.clear()

    def _found(self, packet: "Packet[Any]") -> "Iterator[VideoFrame | InputError]":
        import av

        # of H.264 in packets that may be whole the decoder finds what is missing
        is_unusable = packet.is_corrupt and not self._marks_whole_packets
        if self._numbers is not None and packet.size and self._numbers.is_gap_before(memoryview(packet)):
            yield from self._begin_anew()
            is_unusable = not self._numbers.is_intra  # whatever its messages say: they may be those of a lost picture
        frames, error = list["VideoFrame"](), None
        if self._marks_recovery and not packet.size:  # what is held back until the end is not marked
            self._needs_key |= self._is_damaged
        try:
            if is_unusable:
                error = InputError(DAMAGED)
            else:
                frames, self._num_refused = self._codec.decode(packet), 0
        except av.error.FFmpegError as err:
            self._num_refused += 1
            if self._num_refused > MAX_DAMAGED_PACKETS:
                raise
            self._needs_key = True  # also for what threads have decoded since
            error = InputError(f"cannot be decoded: {err.strerror}")
        yield from map(self._checked, frames)
        if error is not None or self._holds_damage:
            yield from self._begin_anew()
        if error is not None:
            self._has_begun |= packet.is_keyframe
            yield error

    def _begin_anew(self) -> "Iterator[VideoFrame | InputError]":
        """Yields what the decoder holds back, and has it forget the damage."""
        import av

        self._needs_key |= self._is_damaged
        with contextlib.suppress(av.error.FFmpegError):
            yield from map(self._checked, self._codec.decode(None))
        self._codec.flush_buffers()
        self._is_damaged, self._holds_damage, self._needs_key = True, False, not self._marks_recovery

    def _checked(self, frame: "VideoFrame") -> "VideoFrame | InputError":
        is_key = frame.key_frame or frame.pict_type == INTRA
        self._has_begun |= is_key
        if not frame.is_corrupt and (is_key or not self._needs_key):
            self._is_damaged = self._needs_key = False
            return frame
        if frame.is_corrupt and (is_key or not self._is_damaged):
            self._is_damaged = self._holds_damage = self._needs_key = True
        return InputError(DAMAGED)
