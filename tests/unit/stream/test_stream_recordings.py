# SPDX-License-Identifier: Apache-2.0
"""A whole recording has every frame at its time and no error, whoever wrote it; one that was cut says so at its end."""

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nndeploy.cli.main import run_command
from nndeploy.errors import InputError
from nndeploy.stream.sources.video_source import frames_of

pytest.importorskip("av", reason="the extra video is not installed")
pytest.importorskip("PIL", reason="the extra vision is not installed")
import av
from recordings import GROUP, RECORDINGS, STEADY

CUT = (
    "OBS, MKV, paused", "Firefox, VP8", "browser, MP4", "phone, faststart", "H.264 in AVI", "motion camera, MPEG-4",
    "motion camera, TS", "DVB",
)  # fmt: skip
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


def outcomes(path: Path, data: bytes) -> list[dict | str]:
    """Returns the fields of each frame, or the text of its error."""
    path.write_bytes(data)
    found: list[dict | str] = []
    for index, item in enumerate(frames_of(path, 0)):
        assert item.index == index
        try:
            found.append(item.load())
        except InputError as err:
            found.append(str(err))
    return found


def frames_in(found: list[dict | str]) -> list[dict]:
    return [one for one in found if not isinstance(one, str)]


@pytest.mark.parametrize("made", RECORDINGS.values(), ids=RECORDINGS)
def test_a_whole_recording_has_every_frame_at_its_time_and_no_error(made, tmp_path) -> None:
    path = tmp_path / f"v{made.suffix}"
    found = outcomes(path, made.write(path))
    assert [one for one in found if isinstance(one, str)] == []
    assert len(found) == (made.num or len(made.times))
    shape = (*made.size[:: -1 if made.rotation else 1], 3)
    assert {one["image"].shape for one in frames_in(found)} == {shape}
    if made.num is None:
        times = np.array([one["seconds"] for one in frames_in(found)])
        assert times - times[0] == pytest.approx(np.array(made.times) / 1000, abs=0.002)


@pytest.mark.parametrize("name", CUT)
@pytest.mark.parametrize("part", [0.6, 0.8])
def test_a_recording_that_was_cut_says_so_at_its_end(name, part, tmp_path) -> None:
    made = replace(RECORDINGS[name], times=range(0, 2400, 40))
    path = tmp_path / f"v{made.suffix}"
    data = made.write(path)
    whole = places_of(frames_in(outcomes(path, data)))
    found = outcomes(path, data[: int(len(data) * part) // 188 * 188 + 100])
    assert isinstance(found[-1], str)
    places = [whole.get(one["image"].tobytes(), -1) for one in frames_in(found)]
    assert places == sorted(set(places))
    assert 10 < len(places) < 60
    assert -1 not in places


def test_no_cut_of_a_packet_gives_a_frame_that_was_never_recorded(tmp_path) -> None:
    made = replace(RECORDINGS["H.264 in AVI"], times=range(0, 1000, 40))
    path = tmp_path / f"v{made.suffix}"
    data = made.write(path)
    whole = places_of(frames_in(outcomes(path, data)))
    with av.open(str(path)) as container:
        packet = [packet for packet in container.demux(video=0) if packet.pos is not None][-3]
    for num_bytes in range(packet.pos + 9, packet.pos + 8 + packet.size, 19):
        found = outcomes(path, data[:num_bytes])
        assert isinstance(found[-1], str)
        assert all(one["image"].tobytes() in whole for one in frames_in(found))


def places_of(frames: list[dict]) -> dict[bytes, int]:
    """Returns where each image comes for the first time."""
    return {one["image"].tobytes(): place for place, one in reversed([*enumerate(frames)])}


@pytest.mark.parametrize(("part", "code"), [(1.0, 0), (0.6, 1)])
def test_a_run_ends_well_if_the_video_is_whole(part, code, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = RECORDINGS["H.264 in AVI"].write(tmp_path / "v.avi")
    (tmp_path / "v.avi").write_bytes(data[: int(len(data) * part) // 188 * 188 + 100])
    (tmp_path / "p.toml").write_text(PIPELINE)
    assert run_command(["run", "--pipeline", "p.toml", "-i", "v.avi", "-o", "out.jsonl"]) == code
    records = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [record["index"] for record in records] == list(range(len(records)))
    assert ["error" in record for record in records] == [False] * (len(records) - code) + [True] * code


@pytest.mark.parametrize("name", ["browser, MP4", "motion camera, TS", "OBS, MKV, paused"])
def test_what_depends_on_a_damaged_frame_is_no_frame(name, tmp_path) -> None:
    made = replace(RECORDINGS[name], times=STEADY)
    path = tmp_path / f"v{made.suffix}"
    data = bytearray(made.write(path))
    whole = [one["image"] for one in frames_in(outcomes(path, data))]
    with av.open(str(path)) as container:
        packets = [packet for packet in container.demux(video=0) if packet.pos is not None]
    number = next(i for i, packet in enumerate(packets) if i > 2 and packet.size > 60)
    begin = packets[number].pos + packets[number].size // 3
    data[begin : begin + 40] = random.Random(1).randbytes(40)  # noqa: S311 - no secret
    found = outcomes(path, data)
    errors = [place for place, one in enumerate(found) if isinstance(one, str)]
    assert 1 < len(errors) < GROUP
    assert errors == list(range(errors[0], GROUP))
    for place, one in enumerate(found):
        assert isinstance(one, str) or np.array_equal(one["image"], whole[place])
