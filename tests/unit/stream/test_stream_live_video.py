# SPDX-License-Identifier: Apache-2.0
"""Cameras: frames over RTSP, HTTP and sockets; connections that drop are opened again, and no frame comes twice."""

import itertools
import random
import threading
from dataclasses import replace

import pytest
from streaming import within_limit

from nndeploy.errors import InputError, InputOutputError
from nndeploy.stream.sources import live_video
from nndeploy.stream.sources.addresses import address_from_text
from nndeploy.stream.sources.live_video import live_frames
from nndeploy.stream.sources.readers import SourceFigures
from nndeploy.stream.sources.source_rules import ReadRules

pytest.importorskip("av", reason="the extra video is not installed")
pytest.importorskip("PIL", reason="the extra vision is not installed")
from cameras import Camera, HttpCamera, RtspCamera, multipart_jpeg, transport_stream

RULES = ReadRules(reconnect=2, backoff_ns=1_000_000, backoff_most_ns=2_000_000)
SHADES = (40, 80, 120, 160, 200, 240)


def frames_of(url, stop, rules=RULES):
    """Returns the brightness, number and figures of all frames until the camera is gone."""
    address, figures, found = address_from_text(url), SourceFigures("camera"), []
    assert address is not None

    def read():
        for item in live_frames(address, rules, stop, figures):
            fields = item.load()
            assert item.known == {"frame": fields["frame"], "seconds": fields["seconds"]}
            found.append((fields["frame"], float(fields["image"].mean())))

    with pytest.raises(InputOutputError, match="Connection refused"):
        within_limit(read, 60)
    return found, figures


def shades_of(found):
    assert [number for number, _ in found] == list(range(len(found))), "numbers go on over all connections"
    return [min(SHADES, key=lambda shade: abs(shade - value)) for _, value in found]


@pytest.mark.parametrize(("kind", "made", "url"), [
    (HttpCamera, multipart_jpeg, "http://127.0.0.1:{}/video"), (Camera, transport_stream, "tcp:127.0.0.1:{}")
])  # fmt: skip
def test_every_frame_of_every_connection_comes_once(kind, made, url, stop) -> None:
    camera = kind([made(SHADES[:2]), made(SHADES[2:5]), made(SHADES[5:])])
    found, figures = frames_of(url.format(camera.port), stop)
    camera.close()
    assert shades_of(found) == list(SHADES)
    assert figures.num_reconnects == 2 + 2


def test_a_hundred_drops_of_rtsp_lose_nothing_but_what_was_under_way(stop) -> None:
    pairs = list(itertools.permutations(SHADES[:5], 2))
    sessions = [pairs[number % len(pairs)] for number in range(100)]
    made = {pair: transport_stream((*pair, SHADES[5])) for pair in set(sessions)}
    camera = RtspCamera(made[pair] for pair in sessions)
    found, figures = frames_of(f"rtsp://127.0.0.1:{camera.port}/stream", stop)
    camera.close()
    assert camera.num_served == 100
    assert shades_of(found) == [shade for pair in sessions for shade in pair]
    assert figures.num_reconnects == 99 + 2


def test_connections_that_drop_in_the_middle_of_anything_never_give_a_frame_twice(stop) -> None:
    dice = random.Random(2)  # noqa: S311 - no secret
    whole = transport_stream(SHADES)
    camera = RtspCamera(whole[: dice.randrange(len(whole))] for _ in range(25))
    address, figures, found = address_from_text(f"rtsp://127.0.0.1:{camera.port}/"), SourceFigures("camera"), []

    def read():
        for item in live_frames(address, replace(RULES, reconnect=30), stop, figures):
            try:
                found.append(float(item.load()["image"].mean()))
            except InputError:
                found.append(-1.0)

    with pytest.raises(InputOutputError):
        within_limit(read, 60)
    camera.close()
    shades = [min(SHADES, key=lambda shade: abs(shade - value)) for value in found if value >= 0]
    starts = sum(shade == SHADES[0] for shade in shades)
    for before, after in itertools.pairwise(shades):
        assert SHADES.index(after) > SHADES.index(before) or after == SHADES[0]
    assert 0 < starts <= 25


def test_a_password_is_never_told(stop) -> None:
    camera = RtspCamera([])
    camera.close()
    address = address_from_text(f"rtsp://user:secret@127.0.0.1:{camera.port}/")
    with pytest.raises(InputOutputError) as caught:
        list(live_frames(address, replace(RULES, reconnect=0), stop, SourceFigures("camera")))
    assert str(caught.value) == f"rtsp://127.0.0.1:{camera.port}/: the connection was lost: Connection refused"


def test_a_camera_that_falls_silent_is_lost(stop, monkeypatch) -> None:
    monkeypatch.setattr(live_video, "SILENT_SECONDS", 0.3)
    is_over = threading.Event()

    class Silent(RtspCamera):
        def play(self, connection, data):
            super().play(connection, data)
            assert is_over.wait(20)

    camera, found = Silent([transport_stream(SHADES)]), []
    address = address_from_text(f"rtsp://127.0.0.1:{camera.port}/")

    def read():
        found.extend(live_frames(address, replace(RULES, reconnect=0), stop, SourceFigures("camera")))

    with pytest.raises(InputOutputError, match="the connection was lost"):
        within_limit(read)
    is_over.set()
    camera.close()


@pytest.mark.parametrize(("kind", "made", "url"), [
    (RtspCamera, transport_stream, "rtsp://127.0.0.1:{}/"), (HttpCamera, multipart_jpeg, "http://127.0.0.1:{}/"),
    (Camera, transport_stream, "tcp:127.0.0.1:{}"),
])  # fmt: skip
def test_a_frame_comes_before_many_others_are_sent(stop, monkeypatch, kind, made, url) -> None:
    monkeypatch.setattr(live_video, "SILENT_SECONDS", 60)
    has_come = threading.Event()

    class Pausing(kind):
        def play(self, connection, data):
            super().play(connection, data)
            assert has_come.wait(40)

    camera = Pausing([made(SHADES[:5])])
    address = address_from_text(url.format(camera.port))
    assert address is not None
    frames = live_frames(address, RULES, stop, SourceFigures("camera"))
    within_limit(lambda: [next(frames), next(frames)], 20)
    has_come.set()
    frames.close()
    camera.close()


@pytest.mark.parametrize("data", [b"", b"GET", b"\0" * 5000, b"RTSP/1.0 404 Not Found\r\nCSeq: 1\r\n\r\n"])
def test_what_is_no_video_is_one_error(data, stop) -> None:
    for kind, url in (
        (Camera, "rtsp://127.0.0.1:{}/"), (HttpCamera, "http://127.0.0.1:{}/"), (Camera, "tcp:127.0.0.1:{}"),
    ):  # fmt: skip
        camera = kind([data])
        address = address_from_text(url.format(camera.port))
        assert address is not None

        def read(address=address):
            return list(live_frames(address, replace(RULES, reconnect=0), stop, SourceFigures("camera")))

        with pytest.raises((InputOutputError, InputError)) as caught:
            within_limit(read)
        assert str(caught.value).startswith(url.format(camera.port))
        camera.close()
