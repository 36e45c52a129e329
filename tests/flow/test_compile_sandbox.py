# SPDX-License-Identifier: Apache-2.0
"""A library that a model exploits sees no secret, reaches nobody and leaves nothing: here a backend tries to."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import onnx.parser
import pytest
from plugin_distribution import write_distribution
from sandbox_canaries import Planted

from nndeploy.bundle.reader import open_bundle
from nndeploy.sandbox.enter import missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"this kernel has no {missing()}")

Compile = Callable[..., "subprocess.CompletedProcess[str]"]
BACKENDS = ("--backends", "canary,onnxruntime", "--objective", "priority", "--no-fallback")


@pytest.fixture
def planted(tmp_path: Path) -> Iterator[Planted]:
    """Secrets and somebody who listens."""
    planted = Planted(tmp_path)
    yield planted
    planted.close()


@pytest.fixture
def compiled(planted: Planted, tmp_path: Path) -> Compile:
    """Returns a function that compiles a small model with the backend that tries everything."""
    site = tmp_path / "site"
    write_distribution(site, "canary_plugin", planted.plugin(), "nndeploy.backends", "canary:Plugin")
    text = '<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float[2] y) { y = Relu(x) }'
    planted.model.write_bytes(onnx.parser.parse_model(text).SerializeToString())

    def run(*options: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "nndeploy", "compile", str(planted.model), "--json", *options]
        environment = {
            **os.environ, "PYTHONPATH": str(site), "HOME": str(planted.home), "TMPDIR": str(planted.temporary),
        }  # fmt: skip
        environment |= {"XDG_CACHE_HOME": str(planted.cache)}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    return run


def test_what_a_backend_tries_is_refused_to_it_and_the_next_one_builds(compiled, planted) -> None:
    before = planted.files()
    done = compiled("-o", str(planted.output / "m.nnd"), *BACKENDS)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [s["backend"] for s in report["submodels"]] == ["onnxruntime"]
    (dropped,) = report["dropped"]
    assert "Permission denied" in dropped
    assert "home/.ssh/x" in dropped
    assert report["warnings"] == []
    assert planted.heard() == []
    after = planted.files()
    assert len(after.pop("nndeploy/made-here").split()) == 1  # the command's own note of what it made
    assert after == before
    assert [path.name for path in planted.output.iterdir()] == ["m.nnd"]
    with open_bundle(planted.output / "m.nnd") as bundle:
        assert bundle.manifest.submodels


def test_without_a_sandbox_it_gets_everywhere(compiled, planted) -> None:
    done = compiled("-o", str(planted.output / "m.nnd"), *BACKENDS, "--no-sandbox")
    assert done.returncode == 69
    for attempt in ("read a private key", "read the signing key", "write a file for others", "connect", "limit it"):
        assert attempt in done.stderr
    assert planted.heard() == ["tcp", "udp", "unix"]
