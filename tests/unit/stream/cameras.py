# SPDX-License-Identifier: Apache-2.0
"""Cameras on this machine's loopback: RTSP, MJPEG over HTTP and MPEG-TS over a socket, which drop their connections.

`RtspCamera` speaks as much of RTSP as a client needs to play one stream: OPTIONS, DESCRIBE, SETUP over the same TCP
connection, PLAY, TEARDOWN; pictures go as MPEG-TS in RTP packets between `$` signs.

Source: RFC 2326 (RTSP, 10.12 for interleaved data), RFC 3550 (RTP), RFC 2250 (MPEG-TS in RTP, payload type 33).
"""

import contextlib
import io
import socket
import struct
import threading
from collections.abc import Iterable, Iterator

import av
import numpy as np
from PIL import Image

DESCRIPTION = "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=test\r\nt=0 0\r\nm=video 0 RTP/AVP 33\r\na=control:track\r\n"
PACKET = 188
PACKETS_EACH = 7


def shade(value, size=(48, 64)):
    return np.full((*size, 3), value, np.uint8)


def transport_stream(shades):
    """Returns one frame of each shade as MPEG-TS, each a picture of its own."""
    file = io.BytesIO()
    with av.open(file, "w", format="mpegts") as container:
        stream = container.add_stream("mpeg2video", rate=25)
        stream.width, stream.height, stream.pix_fmt, stream.gop_size = 64, 48, "yuv420p", 1
        for value in shades:
            for packet in stream.encode(av.VideoFrame.from_ndarray(shade(value), format="rgb24")):
                container.mux(packet)
        for packet in stream.encode(None):
            container.mux(packet)
    return file.getvalue()


def multipart_jpeg(shades):
    """Returns the answer of a camera that sends one JPEG of each shade."""
    head = b"HTTP/1.0 200 OK\r\nContent-Type: multipart/x-mixed-replace; boundary=next\r\n\r\n"
    parts = []
    for value in shades:
        file = io.BytesIO()
        Image.fromarray(shade(value)).save(file, "JPEG")
        data = file.getvalue()
        parts.append(b"--next\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n%s\r\n" % (len(data), data))
    return head + b"".join(parts)


class Camera:
    """Serves one session after the other and ends each connection; then it is gone."""

    def __init__(self, sessions: Iterable[bytes]) -> None:
        """`sessions` has what is sent over each connection."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.num_served = 0
        self._thread = threading.Thread(target=self._serve, args=(iter(sessions),), daemon=True)
        self._thread.start()

    def _serve(self, sessions: Iterator[bytes]) -> None:
        with self._listener:
            for data in sessions:
                connection = self._listener.accept()[0]
                with connection, contextlib.suppress(OSError):
                    connection.settimeout(10)
                    self.play(connection, data)
                    connection.shutdown(socket.SHUT_WR)
                    self.num_served += 1

    def play(self, connection: socket.socket, data: bytes) -> None:
        """Sends what a session has."""
        connection.sendall(data)

    def close(self) -> None:
        """Waits until it is gone."""
        self._thread.join(10)
        assert not self._thread.is_alive()


class HttpCamera(Camera):
    """Answers each request with pictures."""

    def play(self, connection: socket.socket, data: bytes) -> None:
        """Reads a request, and answers it."""
        _request(connection)
        connection.sendall(data)


class RtspCamera(Camera):
    """Plays MPEG-TS to whoever asks, over the connection on which they ask."""

    description = DESCRIPTION

    def play(self, connection: socket.socket, data: bytes) -> None:
        """Answers requests until one is to play; then sends the pictures."""
        while True:
            method, number = _request(connection)
            extra, body = "", ""
            if method == "OPTIONS":
                extra = "Public: OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN\r\n"
            elif method == "DESCRIBE":
                body = self.description
                extra = f"Content-Type: application/sdp\r\nContent-Length: {len(body)}\r\n"
            elif method == "SETUP":
                extra = "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\nSession: 1\r\n"
            elif method == "PLAY":
                extra = "Session: 1\r\n"
            connection.sendall(f"RTSP/1.0 200 OK\r\nCSeq: {number}\r\n{extra}\r\n{body}".encode())
            if method == "PLAY":
                break
        connection.sendall(self.media(data))

    def media(self, data: bytes) -> bytes:
        """Returns the RTP packets of a transport stream, as they go over the connection of RTSP."""
        size = PACKET * PACKETS_EACH
        parts = [data[first : first + size] for first in range(0, len(data), size)]
        return b"".join(
            struct.pack(">cBHBBHII", b"$", 0, 12 + len(part), 0x80, 33, sequence & 0xFFFF, sequence * 3600, 1) + part
            for sequence, part in enumerate(parts)
        )


def _request(connection: socket.socket) -> tuple[str, str]:
    """Returns the method of a request and its number."""
    text = b""
    while not text.endswith(b"\r\n\r\n"):
        got = connection.recv(1)
        if not got:
            raise ConnectionAbortedError
        text += got
    lines = text.decode("latin-1").split("\r\n")
    numbers = [line.partition(":")[2].strip() for line in lines if line.lower().startswith("cseq")]
    return lines[0].partition(" ")[0], "".join(numbers)
