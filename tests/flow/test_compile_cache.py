# SPDX-License-Identifier: Apache-2.0
"""The cache of builds as a user meets it: the same bytes at once, and only what changed built anew."""

import json
from pathlib import Path
from typing import Any

import onnx.parser
import pytest
from bazel_remote_server import BazelRemoteServer

from nndeploy.compiler import cached_compile
from nndeploy.compiler.job import Onlooker
from nndeploy.compiler.options import CompileLimits

CLASSIFIER = """<ir_version: 8, opset_import: ["": 17]>
g (float[N,4] x) => (float[N,3] y) <float[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}> { h = MatMul(x, w) y = Softmax(h) }"""
QUICK = ("--backends", "onnxruntime,reference", "--objective", "priority")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    onnx.save(onnx.parser.parse_model(CLASSIFIER), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_a_second_compile_takes_what_the_first_made_and_a_third_what_is_the_same(
    nndeploy_command, model, tmp_path
) -> None:
    def compiled(out: str, *more: str) -> dict[str, Any]:
        cache = ("--cache-dir", tmp_path / "cache", *QUICK)
        done = nndeploy_command("compile", model, "-o", tmp_path / out, "--json", *cache, *more)
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    first, second = compiled("1.nnd"), compiled("2.nnd")
    assert (first["cache"]["status"], second["cache"]["status"]) == ("miss", "hit")
    assert (tmp_path / "1.nnd").read_bytes() == (tmp_path / "2.nnd").read_bytes()
    calls = {path.name for path in (tmp_path / "cache" / "ac").rglob("*") if path.is_file()}
    third = compiled("3.nnd", "--goldens", "0")
    assert (third["cache"]["status"], third["cache"]["differs"]) == ("miss", ["option:num_goldens"])
    new = {path.name for path in (tmp_path / "cache" / "ac").rglob("*") if path.is_file()} - calls
    assert new == {third["cache"]["key"]}, "libraries were asked again what they had answered"
    done = nndeploy_command("cache", "verify", "--cache-dir", tmp_path / "cache")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("files", [(), ("photo.png",)])
def test_samples_without_a_sample_are_refused_though_the_rest_is_in_the_cache(
    nndeploy_command, model, tmp_path, files
) -> None:
    (tmp_path / "inputs").mkdir()
    for name in files:
        (tmp_path / "inputs" / name).write_bytes(b"")
    command = ("compile", model, "-o", tmp_path / "m.nnd", "--cache-dir", tmp_path / "cache", *QUICK)
    assert nndeploy_command(*command).returncode == 0
    done = nndeploy_command(*command, "--samples", tmp_path / "inputs")
    assert done.returncode == 66
    assert str(tmp_path / "inputs") in done.stderr


def test_another_machine_takes_a_bundle_from_the_cache_that_they_share(nndeploy_command, model, tmp_path) -> None:
    pytest.importorskip("requests", reason="the extra `registry` is not installed")
    options = (*QUICK, "--cache-push", "always")
    with BazelRemoteServer() as server:
        for machine in ("1", "2"):
            folder = ("--cache-dir", tmp_path / machine, "--cache-remote", server.address)
            done = nndeploy_command("compile", model, "-o", tmp_path / f"{machine}.nnd", *folder, *options)
            assert done.returncode == 0, done.stderr
            assert "warning" not in done.stderr
            assert (f"reused from the cache {server.address} (" in done.stdout) == (machine == "2")
        assert server.asked.count(("PUT", "ac")) == 1
    assert (tmp_path / "1.nnd").read_bytes() == (tmp_path / "2.nnd").read_bytes()


def num_known(model: Path, caching: cached_compile.CacheOptions) -> int:
    """Returns how many answers of libraries another compile of the model would find."""
    cache = cached_compile.opened_cache(caching, print)
    parts = cached_compile._parts(str(model), {}, CompileLimits())
    keeper = cached_compile._Keeper(cache, parts, str(model), lambda: parts, 1 << 30, print)
    return len(keeper.known_calls()["calls"])


def test_answers_serve_the_same_files_alone(nndeploy_command, model, tmp_path) -> None:
    """Who broke into the processes of a compile may have forged them: the next model at its path gets none."""
    caching = cached_compile.CacheOptions(cache_dir=str(tmp_path / "cache"))
    options = ("--cache-dir", tmp_path / "cache", *QUICK)
    assert nndeploy_command("compile", model, "-o", tmp_path / "m.nnd", *options).returncode == 0
    assert num_known(model, caching) > 0
    onnx.save(onnx.parser.parse_model(CLASSIFIER.replace("12}", "13}")), model)
    assert num_known(model, caching) == 0


def test_a_compile_that_was_interrupted_leaves_its_answers_to_the_next(model, tmp_path) -> None:
    class Interrupts(Onlooker):
        def event(self, stage: str, _detail: str) -> None:
            if stage == "check and write":
                raise KeyboardInterrupt

    caching = cached_compile.CacheOptions(cache_dir=str(tmp_path / "cache"))
    given = {"backends": ("onnxruntime", "reference"), "objective": "priority"}
    out = tmp_path / "m.nnd"
    with pytest.raises(KeyboardInterrupt):
        cached_compile.compile_cached(str(model), str(out), given, CompileLimits(), caching, Interrupts(), print)
    assert not out.exists()
    assert num_known(model, caching) > 0
