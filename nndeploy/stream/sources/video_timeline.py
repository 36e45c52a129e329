# SPDX-License-Identifier: Apache-2.0
"""What of a video is missing, by the times of its frames: a decoder passes over what it cannot find without a word.

A pause is a gap once it is much longer than every one before it, so a video of a variable rate is not full of them. The
end is missing where the file says that it is longer than what came out of it. Where a file does not say (a transport
stream, or one that was never finished), a cut between two frames cannot be told.

Source: the duration that demuxers of FFmpeg give, and the tag DURATION that it and mkvtoolnix write into Matroska.
"""

import re
from typing import TYPE_CHECKING, Any

from nndeploy.errors import InputError

if TYPE_CHECKING:
    from av import Packet, VideoFrame
    from av.container import InputContainer
    from av.video.stream import VideoStream

GAP = 2.5
"""A pause is a gap if it is so many times longer than every one before it: two frames are missing, or more."""
FIRST_FRAMES = 5
"""So many frames must have been seen before it is known which pauses are usual."""
LATE_FRAMES = 0.75
"""A file may say so many frames too much of its length: times are rounded."""
TAG = re.compile(r"(\d+):(\d\d):(\d\d(?:\.\d+)?)")


class Timeline:
    """The times of the frames of one video, as they come."""

    def __init__(self, container: "InputContainer", stream: "VideoStream") -> None:
        self._length = _seconds_of(container, stream)
        start, base = stream.start_time, stream.time_base
        self._start = float(start * base) if start is not None and base is not None else 0.0
        self._last: float | None = None
        self._longest_shown = self._longest_pause = 0.0
        self._num_frames = 0

    def expect(self, packet: "Packet[Any]") -> None:
        """Learns from a packet, before its frame comes, for how long a frame may be shown."""
        if packet.duration is not None and packet.time_base is not None and not packet.is_corrupt:
            self._longest_shown = max(self._longest_shown, float(packet.duration * packet.time_base))

    def gap_before(self, frame: "VideoFrame") -> InputError | None:
        """Takes the next frame; returns what to say where there should have been others before it."""
        if frame.time is None:
            return None
        last, self._last = self._last, frame.time
        self._num_frames += 1
        pause = 0.0 if last is None else frame.time - last
        usual, self._longest_pause = max(self._longest_pause, self._longest_shown), max(self._longest_pause, pause)
        if self._num_frames <= FIRST_FRAMES or pause <= GAP * usual:
            return None
        return InputError(f"frames are missing: there is none for {pause:.3g} s after {last:.3f} s")

    def missing_end(self) -> InputError | None:
        """Returns what to say, after the last frame, where there should have been others."""
        if self._length is None or self._last is None:
            return None
        came = self._last + self._longest_shown - self._start
        if came >= self._length - LATE_FRAMES * self._longest_shown:
            return None
        return InputError(f"the end is missing: it says that it has {self._length:.3f} s, and {came:.3f} s came")


def _seconds_of(container: "InputContainer", stream: "VideoStream") -> float | None:
    """Returns how long the file says that its video is, None where it does not say."""
    if stream.duration is not None and stream.time_base is not None:
        return float(stream.duration * stream.time_base)
    if found := TAG.match(stream.metadata.get("DURATION", "")):
        hours, minutes, seconds = found.groups()
        return int(hours) * 3600 + int(minutes) * 60 + float(seconds)
    if container.duration is not None and len(container.streams) == 1:
        return container.duration / 1e6
    return None
