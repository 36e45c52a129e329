# SPDX-License-Identifier: Apache-2.0
"""A chain over several GPUs and the CPU, on a pretended driver: who runs what where, and every copy that is made."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from compile_with import compile_with
from faulty_backends import Install
from layers_in_a_line import INPUT, ROWS, SIZES, assert_right, network
from pretended_gpus import box, gpu_backend, machine_with

import nndeploy
from nndeploy.bundle.manifest import Manifest
from nndeploy.bundle.reader import open_bundle
from nndeploy.errors import UnavailableError
from nndeploy.runtime.chain import ChainStep
from nndeploy.target.place_limits import places_in
from nndeploy.target.target import Target
from nndeploy.testing.host_driver import Copy, HostDriver

TWO = box("two", "8.9", "8.9")
BOTH = "cuda:0=512KiB,cuda:1=512KiB"
FIRST, NARROW, LAST = (4 * ROWS * SIZES[i] for i in (0, 3, 6))
"""Bytes of the input, of the value where the layers are cut, and of the output."""


@pytest.fixture
def gpu(install: Install) -> Any:
    """A backend for GPUs that takes all of the layers."""
    found = gpu_backend("gpu", "MatMul", "Tanh")
    install(found)
    return found


def compiled(path: Path, place: str, target: Target = TWO, **options: Any) -> Manifest:
    """Returns the manifest of a bundle that is made on a machine without a GPU."""
    asked = {"backends": ("gpu", "onnxruntime"), "objective": "priority", "keep_fallback": False, **options}
    places = places_in(place) if place else ()
    with machine_with():
        compile_with(network(), path, places=places, targets=(target,), **asked)
    with open_bundle(path) as bundle:
        return bundle.manifest


def ran_on(program: nndeploy.Program) -> list[tuple[str, str]]:
    return [(choice.backend, choice.device) for choice in program.choices]


def copies_of_a_run(program: nndeploy.Program, driver: HostDriver) -> list[Copy]:
    assert_right(program.run(INPUT))
    driver.copies.clear()
    assert_right(program.run(INPUT))
    return driver.copies


def test_values_are_copied_where_they_cross_and_nowhere_else(gpu, tmp_path) -> None:
    manifest = compiled(tmp_path / "m.nnd", BOTH)
    assert [one.place for one in manifest.placings["two"].submodels.values()] == ["cuda:0", "cuda:1"]
    assert manifest.placings.keys() == {"two"}, "the portable chain is as ever"
    with machine_with("8.9", "8.9") as driver:
        with nndeploy.load_bundle(tmp_path / "m.nnd") as program:
            assert (program.chain.id, program.chain.where, program.warnings) == ("two", "cuda:0, cuda:1", ())
            assert ran_on(program) == [("gpu", "cuda:0"), ("gpu", "cuda:1")]
            assert copies_of_a_run(program, driver) == [
                Copy("to device", 0, FIRST), Copy("to host", 0, NARROW), Copy("to device", 1, NARROW),
                Copy("to host", 1, LAST),
            ]  # fmt: skip
        assert driver.live_bytes == 0


def test_calls_follow_each_other_over_the_gpus_and_each_has_a_gpu_for_itself(gpu, tmp_path) -> None:
    compiled(tmp_path / "m.nnd", BOTH)
    num_calls = 24
    with machine_with("8.9", "8.9") as driver:
        with nndeploy.load_bundle(tmp_path / "m.nnd") as program:
            assert (program.stages, program.calls_at_once) == (("cuda:0", "cuda:1"), 3)
            program.run(INPUT)
            driver.copies.clear()
            with ThreadPoolExecutor(program.calls_at_once) as threads:
                for outputs in threads.map(program.run, [INPUT] * num_calls):
                    assert_right(outputs)
        for i, (given, made) in enumerate([(FIRST, NARROW), (NARROW, LAST)]):
            own = [copy for copy in driver.copies if copy.ordinal == i]
            assert own == [Copy("to device", i, given), Copy("to host", i, made)] * num_calls
        assert driver.live_bytes == 0


def test_a_call_waits_for_a_gpu_with_its_values_on_the_host(gpu, tmp_path, monkeypatch) -> None:
    """So no GPU holds more than for one call, however many wait: its limit of memory is not exceeded."""
    compiled(tmp_path / "m.nnd", BOTH)
    is_first_in, may_end, run = threading.Event(), threading.Event(), ChainStep.__call__

    def held(step: ChainStep, values: Any) -> Any:
        if step.inputs == ("v3",):
            is_first_in.set()
            assert may_end.wait(30)
        return run(step, values)

    monkeypatch.setattr(ChainStep, "__call__", held)
    with machine_with("8.9", "8.9") as driver, nndeploy.load_bundle(tmp_path / "m.nnd") as program:
        before = driver.live_bytes
        with ThreadPoolExecutor(3) as threads:
            calls = [threads.submit(program.run, INPUT)]
            assert is_first_in.wait(30)
            driver.copies.clear()
            calls += [threads.submit(program.run, INPUT) for _ in range(2)]
            until = time.monotonic() + 30
            while time.monotonic() < until and (
                driver.copies.count(Copy("to host", 0, NARROW)) < 2 or driver.live_bytes > before
            ):
                time.sleep(0.001)
            assert (driver.copies.count(Copy("to host", 0, NARROW)), driver.live_bytes) == (2, before)
            may_end.set()
            for call in calls:
                assert_right(call.result(30))


def test_what_does_not_fit_the_gpu_is_cut_off_for_the_cpu(gpu, tmp_path) -> None:
    manifest = compiled(tmp_path / "m.nnd", "cuda:0=512KiB,cpu")
    (between,) = manifest.target_chains[0].submodels[1].inputs
    crosses = manifest.placings["two"].value_bytes[between]
    on_gpu, on_cpu = manifest.placings["two"].submodels.values()
    assert on_gpu.weight_bytes + on_gpu.peak_bytes <= 512 << 10
    assert on_gpu.weight_bytes > on_cpu.weight_bytes, "a GPU is much faster, so it gets as much as it holds"
    with machine_with("8.9") as driver, nndeploy.load_bundle(tmp_path / "m.nnd") as program:
        assert ran_on(program) == [("gpu", "cuda:0"), ("onnxruntime", "cpu")]
        assert copies_of_a_run(program, driver) == [Copy("to device", 0, FIRST), Copy("to host", 0, crosses)]


def test_each_gpu_gets_what_is_built_for_its_kind(gpu, tmp_path) -> None:
    manifest = compiled(tmp_path / "m.nnd", BOTH, box("mixed", "8.9", "7.5"))
    (chain,) = manifest.target_chains
    needs = [submodel.variants[0].requires["compute_capability"] for submodel in chain.submodels]
    assert [list(one) for one in needs] == [["8.9"], ["7.5"]]
    with machine_with("8.9", "7.5"), nndeploy.load_bundle(tmp_path / "m.nnd") as program:
        assert program.chain.where == "cuda:0, cuda:1"
        assert_right(program.run(INPUT))
    with machine_with("7.5", "8.9"), nndeploy.load_bundle(tmp_path / "m.nnd") as program:
        assert program.chain.id == "portable", "the GPUs are in another order"


def test_a_box_may_spread_the_submodels_over_other_gpus(gpu, tmp_path) -> None:
    compiled(tmp_path / "m.nnd", BOTH)
    with machine_with("8.9", "8.9", "8.9", "8.9"):
        options = nndeploy.LoadOptions(places=places_in("cuda:3=512KiB,cuda:1=512KiB"))
        with nndeploy.load_bundle(tmp_path / "m.nnd", options) as program:
            assert ran_on(program) == [("gpu", "cuda:3"), ("gpu", "cuda:1")]
            assert_right(program.run(INPUT))
        options = nndeploy.LoadOptions(places=places_in("cuda:3=512KiB,cuda:1"))
        with nndeploy.load_bundle(tmp_path / "m.nnd", options) as program:
            assert ran_on(program) == [("gpu", "cuda:1"), ("gpu", "cuda:1")], "one that holds all spares the crossing"
        with nndeploy.load_bundle(tmp_path / "m.nnd", nndeploy.LoadOptions(device="cuda:2")) as program:
            assert ran_on(program) == [("gpu", "cuda:2"), ("gpu", "cuda:2")]
            assert_right(program.run(INPUT))


def test_values_stay_on_a_gpu_that_has_both_submodels(gpu, tmp_path) -> None:
    compiled(tmp_path / "m.nnd", BOTH)
    with machine_with("8.9") as driver:
        options = nndeploy.LoadOptions(places=places_in("cuda:0"))
        with nndeploy.load_bundle(tmp_path / "m.nnd", options) as program:
            assert copies_of_a_run(program, driver) == [Copy("to device", 0, FIRST), Copy("to host", 0, LAST)]


def test_a_box_that_lacks_a_gpu_takes_the_portable_chain_and_says_why(gpu, tmp_path) -> None:
    compiled(tmp_path / "m.nnd", BOTH)
    with machine_with("8.9"):
        with nndeploy.load_bundle(tmp_path / "m.nnd") as program:
            assert program.chain.id == "portable"
            assert program.warnings == (
                "the chain portable runs on the CPU, not one for a GPU: two: "
                "there is no GPU cuda:1: this machine has 1",
            )
            assert_right(program.run(INPUT))
        for options in ({"strict": True}, {"places": places_in(BOTH)}):
            with pytest.raises(UnavailableError, match="there is no GPU cuda:1: this machine has 1") as caught:
                nndeploy.load_bundle(tmp_path / "m.nnd", nndeploy.LoadOptions(**options))
            assert caught.value.exit_code == 69


def test_a_gpu_that_is_smaller_than_was_said_is_not_begun_with(gpu, tmp_path) -> None:
    compiled(tmp_path / "m.nnd", BOTH)
    with (
        machine_with("8.9", "8.9", memory_bytes=400 << 10),
        pytest.raises(UnavailableError, match=r"the submodels on cuda:0 need 416\.0 KiB, it has 400\.0 KiB"),
    ):
        nndeploy.load_bundle(tmp_path / "m.nnd", nndeploy.LoadOptions(strict=True))
