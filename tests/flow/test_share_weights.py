# SPDX-License-Identifier: Apache-2.0
"""`--share-weights`: packed weights are kept beside the bundle, and mapped by whoever opens it next."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import layers_in_a_line
import numpy as np
import onnx
import pytest

from nndeploy import load_bundle

Command = Callable[..., Any]


@pytest.fixture
def bundle(here: Path, nndeploy_command: Command) -> Path:
    onnx.save(layers_in_a_line.network(), here / "net.onnx")
    done = nndeploy_command("compile", "net.onnx", "-o", "net.nnd", "--backends", "native", "--objective", "priority")
    assert done.returncode == 0, done.stderr
    return here / "net.nnd"


def test_the_first_run_keeps_them_and_others_map_them(bundle: Path, nndeploy_command: Command) -> None:
    np.savez("in.npz", **layers_in_a_line.INPUT)
    done = nndeploy_command("run", "net.nnd", "--input", "in.npz", "-o", "out", "--share-weights")
    assert done.returncode == 0, done.stderr
    (kept,) = Path("net.nnd.cache").iterdir()
    before = kept.stat()
    with load_bundle(bundle, share_weights=True) as program:
        assert str(kept) in Path("/proc/self/maps").read_text()
        layers_in_a_line.assert_right(program.run(layers_in_a_line.INPUT))
    assert kept.stat().st_mtime_ns == before.st_mtime_ns


def test_without_it_nothing_is_kept(bundle: Path, nndeploy_command: Command) -> None:
    with load_bundle(bundle) as program:
        program.run(layers_in_a_line.INPUT)
    assert not Path("net.nnd.cache").exists()


def test_it_needs_a_cache_that_can_be_written(bundle: Path, nndeploy_command: Command) -> None:
    assert nndeploy_command("verify", "net.nnd", "--share-weights", "--cache", "").returncode == 2
    done = nndeploy_command("verify", "net.nnd", "--share-weights", "--cache", "net.nnd")
    assert done.returncode == 74, done.stderr
    assert "--cache" in done.stderr
