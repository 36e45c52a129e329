# SPDX-License-Identifier: Apache-2.0
"""A text generator in a stream: each talk goes on with its own tokens and its own cache, whatever comes between."""

import json
from pathlib import Path
from typing import Any

import pytest

from nndeploy.cli.main import run_command

RHYMES = Path(__file__).resolve().parents[2] / "examples" / "rhymes"
REQUESTS = (RHYMES / "talks.jsonl").read_text().splitlines(keepends=True)
TALKS = sorted({json.loads(line)["talk"] for line in REQUESTS})
TEXTS = [rhyme.strip("\n") + "\n" for rhyme in (RHYMES / "rhymes.txt").read_text().split("\n\n")]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the generator on native kernels, with its pipeline."""
    path = tmp_path_factory.mktemp("rhymes") / "rhymes.nnd"
    command = ["compile", RHYMES / "rhymes.onnx", "--pipeline", RHYMES / "rhymes.toml", "--backends", "native"]
    assert run_command([str(word) for word in [*command, "--objective", "priority", "--no-fallback", "-o", path]]) == 0
    return path


def streamed(bundle: Path, requests: list[str], folder: Path) -> list[dict[str, Any]]:
    (folder / "in.jsonl").write_text("".join(requests))
    command = ["run", str(bundle), "--input", str(folder / "in.jsonl"), "--output", str(folder / "out.jsonl")]
    assert run_command(command) == 0
    return [json.loads(line)["outputs"] for line in (folder / "out.jsonl").read_text().splitlines()]


def texts(said: list[dict[str, Any]]) -> dict[str, str]:
    return {talk: "".join("".join(one["text"]) for one in said if one["talk"] == talk) for talk in TALKS}


def of_talk(talk: str) -> list[str]:
    return [line for line in REQUESTS if json.loads(line)["talk"] == talk]


def test_talks_that_are_mixed_say_what_each_says_alone(bundle, tmp_path) -> None:
    mixed = texts(streamed(bundle, REQUESTS, tmp_path))
    assert len(set(mixed.values())) == len(TALKS) > 2
    assert set(mixed.values()) <= set(TEXTS)
    for talk in TALKS:
        assert texts(streamed(bundle, of_talk(talk), tmp_path))[talk] == mixed[talk]
