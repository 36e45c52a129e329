# SPDX-License-Identifier: Apache-2.0
"""`compile --cache-buffer`, and what `inspect` shows of fused steps and their windows."""

import json
from pathlib import Path
from typing import Any

import pytest
from separable_model import needs_native, separable_model

from nndeploy.cli.main import run_command

BACKENDS = ("--backends", "native,onnxruntime", "--objective", "priority")
BOX = """arch = "x86_64"
level = "x86-64-v3"
[caches]
l2 = 1048576
buffer = 16384
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs_native()
    return separable_model(tmp_path_factory.mktemp("model") / "separable.onnx")


@pytest.fixture(scope="module")
def bundle(model: Path) -> Path:
    """The bundle of a buffer of 1 KiB, in which images are cut."""
    return compiled(model, "--cache-buffer", "1KiB")


def fused_steps(bundle: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """Returns the fused steps that `inspect --here --json` shows, one list of all variants."""
    capsys.readouterr()
    assert run_command(["inspect", str(bundle), "--here", "--json"]) == 0
    variants = json.loads(capsys.readouterr().out)["steps"]
    return [step for variant in variants for step in variant["steps"] if "window" in step]


def compiled(model: Path, *arguments: object) -> Path:
    out = model.with_name(f"{len(list(model.parent.iterdir()))}.nnd")
    assert run_command(["compile", str(model), "-o", str(out), *BACKENDS, *map(str, arguments)]) == 0
    return out


def test_the_capacity_changes_the_window_and_the_option_wins_over_the_target_s_own(model, capsys) -> None:
    box = model.with_name("box.toml")
    box.write_text(BOX)
    large, own, small = (
        fused_steps(compiled(model, *options), capsys)
        for options in (("--cache-buffer", "1MiB"), ("--target", box), ("--target", box, "--cache-buffer", "8KiB"))
    )
    assert [step["buffer_bytes"] for step in (*large, *small)] == [1 << 20, 8192]
    assert large[0]["what"] == small[0]["what"]
    assert large[0]["window"] != small[0]["window"]
    assert 16384 in {step["buffer_bytes"] for step in own}


def test_inspect_shows_fused_steps_and_with_verbose_all(bundle, capsys) -> None:
    (step,) = fused_steps(bundle, capsys)
    run_command(["inspect", str(bundle), "--here"])
    short = capsys.readouterr().out
    row = next(line for line in short.splitlines() if line.startswith(step["kernel"]))
    assert all(part in row for part in (step["what"], step["window"], "1 KiB", step["layout"]))
    assert "value y" not in short
    run_command(["inspect", str(bundle), "--here", "-v"])
    assert "steps of s0/v0-native" in (whole := capsys.readouterr().out)
    assert "value y" in whole.partition("steps of")[2].partition("error against")[0]


def test_tables_are_the_windows_of_this_machine(bundle, capsys) -> None:
    (step,) = fused_steps(bundle, capsys)
    assert run_command(["inspect", str(bundle), "--tables", "--json"]) == 0
    (table,) = json.loads(capsys.readouterr().out)["tables"]
    (told,) = [one for one in table["steps"] if one.get("buffer_bytes") == 1024]
    height, width = told["shape"][2:]
    for size, cut, part in zip((height, width), told["windows"].values(), step["window"].split("x"), strict=False):
        assert (cut["size"], (cut["parts"] - 1) * cut["size"] + cut["last"]) == (int(part), size)
        assert 0 < cut["last"] <= cut["size"]
    assert run_command(["inspect", str(bundle), "--tables"]) == 0
    text = capsys.readouterr().out
    assert f"{'x'.join(map(str, told['shape']))} in " in text
    assert f"windows of {step['window']}, buffer 1 KiB" in text
    assert "+---" in text
