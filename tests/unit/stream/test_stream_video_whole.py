# SPDX-License-Identifier: Apache-2.0
"""A video that is cut off, damaged or full of holes says so; one of a variable rate, or of two sizes, does not."""

import json
from pathlib import Path

import numpy as np
import pytest

from nndeploy.cli.main import run_command
from nndeploy.errors import InputError
from nndeploy.stream.sources.video_source import LOST, frames_of

av = pytest.importorskip("av", reason="the extra video is not installed")

NUM_FRAMES, RATE_HZ = 30, 10
CODECS = {".mp4": "libx264", ".mkv": "libx264", ".webm": "libvpx", ".ts": "libx264", ".avi": "mpeg4"}
FAST = {"libx264": {"preset": "superfast"}, "libvpx": {"deadline": "good", "cpu-used": "5"}}
VARIABLE = [0, 1, 2, 10, 11, 12, 13, 20, 38, 39, 40, 41]
PIPELINE = """
[source]
kind = "video"
[[level]]
  [[level.pipeline]]
  name = "small"
  runners = 0
    [[level.pipeline.loader]]
    steps = [{ use = "resize", width = 8, height = 8, in = ["image"], out = ["small", "transform"] }]
[[sink]]
kind = "json-lines"
fields = ["frame", "seconds"]
"""


def clip(path: Path, times=range(NUM_FRAMES), size=(120, 160)) -> bytes:
    """Returns the file of a patch that moves; `times` are those of its frames, in tenths of a second."""
    dice = np.random.default_rng(0)
    patch = dice.integers(0, 255, (20, 60, 3), np.uint8)
    options = {"movflags": "faststart"} if path.suffix == ".mp4" else {}  # else nothing of a cut file can be read
    with av.open(str(path), "w", options=options) as out:
        stream = out.add_stream(CODECS[path.suffix], rate=RATE_HZ)
        stream.height, stream.width = size
        stream.options = FAST.get(CODECS[path.suffix], {})
        stream.pix_fmt, stream.gop_size, stream.bit_rate = "yuv420p", 10, 300_000
        for i, time in enumerate(times):
            image = np.full((*size, 3), 8 * i, np.uint8)
            image[3 * i % 40 : 3 * i % 40 + 20, 20:80] = patch
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts = time
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return path.read_bytes()


def outcomes(path: Path) -> list[tuple[float, tuple[int, ...]] | str]:
    """Returns the time and the shape of each frame, or the text of its error."""
    found: list[tuple[float, tuple[int, ...]] | str] = []
    for item in frames_of(path, 0):
        try:
            fields = item.load()
        except InputError as err:
            found.append(str(err))
        else:
            found.append((round(fields["seconds"], 3), fields["image"].shape))
    return found


def errors_of(path: Path) -> list[str]:
    return [one for one in outcomes(path) if isinstance(one, str)]


@pytest.fixture(params=CODECS)
def path(request, tmp_path: Path) -> Path:
    return tmp_path / f"v{request.param}"


def test_a_whole_video_has_no_error(path: Path) -> None:
    clip(path)
    assert [isinstance(one, tuple) for one in outcomes(path)] == [True] * NUM_FRAMES


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".webm", ".avi"])  # a transport stream does not say how long it is
def test_a_video_that_is_cut_off_says_so_at_its_end(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"v{suffix}"
    data = clip(path)
    path.write_bytes(data[: len(data) * 6 // 10])
    found = outcomes(path)
    assert 0 < len([one for one in found if isinstance(one, tuple)]) < NUM_FRAMES
    assert isinstance(found[-1], str)
    assert found[-1].startswith("the end is missing: it says that it has ")


def test_a_video_with_a_hole_says_so_and_goes_on(path: Path) -> None:
    data = clip(path)
    begin = len(data) // 2 // 188 * 188
    path.write_bytes(data[:begin] + data[begin + 1880 :])
    found = outcomes(path)
    assert any(isinstance(one, tuple) for one in found)
    assert [one for one in found if isinstance(one, str)]


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".webm"])
def test_the_end_that_is_missing_is_told_between_two_frames_too(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"v{suffix}"
    data = clip(path)
    with av.open(str(path)) as container:
        places = [packet.pos for packet in container.demux(video=0) if packet.pos is not None]
    path.write_bytes(data[: places[-5]])
    (error,) = errors_of(path)
    assert error.startswith("the end is missing: it says that it has 3.000 s, and 2.")


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".webm", ".ts"])
def test_a_variable_rate_is_no_gap(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"v{suffix}"
    clip(path, VARIABLE)
    found = outcomes(path)
    times = np.array([one[0] for one in found if isinstance(one, tuple)])
    assert len(times) == len(found)
    assert times - times[0] == pytest.approx(np.array(VARIABLE) / RATE_HZ, abs=0.002)


def test_a_gap_is_told_where_it_is(tmp_path: Path) -> None:
    clip(tmp_path / "v.mkv", [*range(10), *range(20, 30)])
    found = outcomes(tmp_path / "v.mkv")
    assert found[10] == "frames are missing: there is none for 1.1 s after 0.900 s"
    assert [i for i, one in enumerate(found) if isinstance(one, str)] == [10]


def test_another_size_in_the_middle_is_another_size_of_image(tmp_path: Path) -> None:
    first, second = clip(tmp_path / "a.ts"), clip(tmp_path / "b.ts", size=(64, 96))
    (tmp_path / "v.ts").write_bytes(first + second)
    found = outcomes(tmp_path / "v.ts")
    assert len(found) == 2 * NUM_FRAMES
    shapes = [one[1] for one in found if isinstance(one, tuple)]
    # the frame at the joint may be damaged, as nothing says that there is one, and the one beside it be built on it
    assert len(shapes) >= len(found) - 2
    assert shapes == sorted(shapes, reverse=True)
    assert set(shapes) == {(120, 160, 3), (64, 96, 3)}


@pytest.mark.parametrize(("part", "code"), [(1.0, 0), (0.6, 1)])
def test_a_run_ends_well_only_if_the_video_is_complete(
    part: float, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    data = clip(tmp_path / "v.mkv")
    (tmp_path / "v.mkv").write_bytes(data[: int(len(data) * part)])
    (tmp_path / "p.toml").write_text(PIPELINE)
    assert run_command(["run", "--pipeline", "p.toml", "-i", "v.mkv", "-o", "out.jsonl"]) == code
    records = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert ("error" in records[-1]) == (code == 1)
    assert ("the end is missing" in capsys.readouterr().err) == (code == 1)


@pytest.mark.parametrize("suffix", [".mp4", ".mkv"])
def test_what_is_built_on_a_damaged_frame_is_no_frame(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"v{suffix}"
    data = bytearray(clip(path))
    whole = [item.load()["image"] for item in frames_of(path, 0)]
    with av.open(str(path)) as container:
        packets = [packet for packet in container.demux(video=0) if packet.pos is not None]
    number = max(range(11, 13), key=lambda i: packets[i].size)
    begin = packets[number].pos + packets[number].size // 3
    data[begin : begin + packets[number].size // 3] = np.random.default_rng(1).bytes(packets[number].size // 3)
    path.write_bytes(data)
    errors = dict[int, str]()
    for place, item in enumerate(frames_of(path, 0)):
        try:
            assert np.array_equal(item.load()["image"], whole[place])
        except InputError as err:
            errors[place] = str(err)
    damaged, next_key = (
        round(packet.pts * packet.time_base * RATE_HZ)
        for packet in (packets[number], next(packet for packet in packets[number:] if packet.is_keyframe))
    )
    assert errors[damaged] == "is damaged: a part of it is made up"
    assert {errors[place] for place in range(damaged + 1, next_key)} == {LOST}
    assert not [place for place in errors if place >= next_key]
