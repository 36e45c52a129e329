# SPDX-License-Identifier: Apache-2.0
"""Frames of cameras and other live video: RTSP, MJPEG over HTTP, MPEG-TS over sockets and FIFOs.

In comes an `Address`; out come frames, numbered on over all connections. Which demuxer reads is decided by the address
and never by what comes, so nothing that a camera sends opens a file or another address. Frames are decoded in the
thread that reads the source; pixels become RGB in the loaders.

Law: what cannot be decoded is an error record in its place; a connection that is lost loses only the picture that was
under way: of MPEG-TS in RTP also the last whole one, of which only the next would have told that it was over.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from nndeploy.errors import InputOutputError
from nndeploy.files.whole_files import safe_stem
from nndeploy.stream.items import Item
from nndeploy.stream.sources.addresses import Address
from nndeploy.stream.sources.live_bytes import Listener, opened_bytes
from nndeploy.stream.sources.live_items import listening, reconnected
from nndeploy.stream.sources.readers import SourceFigures
from nndeploy.stream.sources.source_rules import ReadRules
from nndeploy.stream.sources.video_decoder import VideoDecoder
from nndeploy.stream.sources.video_source import frame_item, require_av, video_stream_of
from nndeploy.stream.stopping import Stop

if TYPE_CHECKING:
    from av.container import InputContainer

SILENT_SECONDS = 10.0
"""A camera that sends nothing for so long is lost."""
AT_ONCE = {"fpsprobesize": "0"}
"""FFmpeg looks at no frames to find out how many come a second: at 25 a second that took 5 s (libavformat 62)."""
PROTOCOLS = {"rtsp": "rtsp,rtp,tcp", "http": "http,https,tcp,tls"}
FORMATS = {"rtsp": "rtsp", "http": "mpjpeg"}


def live_frames(address: Address, rules: ReadRules, stop: Stop, figures: SourceFigures) -> Iterator[Item]:
    """Yields the frames of a camera.

    Raises:
        InputOutputError: there is nothing to connect to, or the connection was lost, and may not be opened again.
    """
    require_av()
    with listening(address) as listener:
        yield from reconnected(partial(_frames, address, stop, listener, figures), rules, stop, figures)


def _frames(
    address: Address, stop: Stop, listener: Listener | None, figures: SourceFigures, first: int
) -> Iterator[Item]:
    import av

    stem, number = safe_stem(address.path.stem or address.scheme), first
    try:
        with _opened(address, stop, listener) as container:
            if container is None:
                return
            stream = video_stream_of(container, address.shown, is_live=True)
            decoder = VideoDecoder(stream, figures)
            for packet in container.demux(stream):
                for found in decoder.frames(packet):
                    if stop.is_requested:
                        return
                    yield frame_item(0, address.shown, stem, number, found)
                    number += 1
    except (av.error.FFmpegError, OSError, ValueError) as err:
        reason = getattr(err, "strerror", None) or type(err).__name__  # their text has the address with its password
        raise InputOutputError(f"the connection was lost: {reason}", where=address.shown) from err


@contextmanager
def _opened(address: Address, stop: Stop, listener: Listener | None) -> "Iterator[InputContainer | None]":
    import av

    if address.scheme in ("rtsp", "http"):
        options = {**AT_ONCE, "protocol_whitelist": PROTOCOLS[address.scheme], "rtsp_transport": "tcp"}
        if address.scheme == "http":
            del options["rtsp_transport"]
        timeout = (SILENT_SECONDS, SILENT_SECONDS)
        with av.open(address.text, "r", format=FORMATS[address.scheme], options=options, timeout=timeout) as container:
            yield container
        return
    with opened_bytes(address, stop, listener) as raw:
        if raw is None:
            yield None
            return
        # the raw file: a buffered one would wait until as much has come as a demuxer asks for
        with av.open(raw, "r", format="mpegts", options=AT_ONCE) as container:
            yield container
