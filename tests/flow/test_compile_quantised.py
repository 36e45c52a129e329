# SPDX-License-Identifier: Apache-2.0
"""`nndeploy compile --quantise` as a user meets it: what it prints, what `inspect` and `verify` say, how it ends."""

import json
from pathlib import Path

import numpy as np
import pytest

from nndeploy.cli.main import run_command

DIGITS = Path(__file__).resolve().parents[2] / "examples/digits"
QUICK = ("--objective", "priority", "--backends", "onnxruntime", "--no-fallback")


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """Returns a folder with two samples for each of four images."""
    folder = tmp_path / "inputs"
    folder.mkdir()
    with np.load(DIGITS / "batch.npz") as arrays:
        for i, image in enumerate(np.concatenate([arrays["image"], arrays["image"][..., ::-1]])):
            np.savez(folder / f"{i}.npz", image=image[None])
    return folder


def ended(capfd: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Returns exit code, standard output and standard error of a command."""
    code = run_command([str(argument) for argument in arguments])
    return code, *capfd.readouterr()


def test_a_quantised_bundle_tells_how_it_came_about_and_verifies(inputs, tmp_path, capfd) -> None:
    bundle, command = tmp_path / "q.nnd", ("compile", DIGITS / "digits.onnx", *QUICK)
    code, out, _ = ended(capfd, *command, "-o", bundle, "--quantise", "int8", "--samples", inputs)
    assert code == 0
    assert "quantised to int8: 17 of 17 layers" in out
    assert "error against the quantised model on 2 samples" in out
    assert ended(capfd, "verify", bundle)[0] == 0
    code, shown, _ = ended(capfd, "inspect", bundle)
    assert code == 0
    assert "quantised to int8: 17 of 17 layers" in shown
    assert "2 samples" in shown
    code, told, _ = ended(capfd, "inspect", bundle, "--json")
    assert json.loads(told)["report"]["quantisation"]["to"] == "int8"
    assert json.loads(told)["report"]["samples"] == "given"


@pytest.mark.parametrize(("arguments", "code", "said"), [
    (("--quantise", "int8"), 2, "--quantise needs samples"),
    (("--quantise", "int9"), 2, "int9"),
    (("--quantise-tolerance", "30"), 2, "are for --quantise"),
    (("--quantise", "int8", "--samples", "nowhere"), 66, "no sample (.npz file) here"),
    (("--quantise", "int4", "--samples", "inputs"), 65, "no MatMul by constant weights"),
    (("--quantise", "int8", "--samples", "inputs", "--quantise-tolerance", "150"), 1, "accurate enough"),
])  # fmt: skip
def test_what_cannot_be_done_is_one_line(arguments, code, said, inputs, capfd, monkeypatch) -> None:
    monkeypatch.chdir(inputs.parent)
    ended_with, _, err = ended(capfd, "compile", DIGITS / "digits.onnx", "-o", "q.nnd", *QUICK, *arguments)
    (line,) = [line for line in err.splitlines() if "error" in line]
    assert ended_with == code
    assert said in line
    assert not (inputs.parent / "q.nnd").exists()
