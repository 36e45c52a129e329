# SPDX-License-Identifier: Apache-2.0
"""A chain over several places: where it is cut, on which cores it really runs, what is said where it does not fit."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import pytest
from compile_with import compile_with
from layers_in_a_line import INPUT, ROWS, SIZES, assert_right, network

import nndeploy
from nndeploy.bundle.manifest import Manifest
from nndeploy.bundle.reader import open_bundle
from nndeploy.cli.main import run_command
from nndeploy.errors import UnavailableError, UsageError
from nndeploy.pacing.plan.goal import PaceGoal
from nndeploy.runtime import core_pool
from nndeploy.runtime.chain import ChainStep
from nndeploy.target.place_limits import places_in

BOTH = "cpu:0=512KiB,cpu:1=512KiB"
TWO_CORES = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two pools need two cores")


def compiled(path: Path, place: str, **options: Any) -> Manifest:
    asked = {"backends": ("native",), "objective": "priority", "keep_fallback": False, **options}
    compile_with(network(), path, places=places_in(place), **asked)
    with open_bundle(path) as bundle:
        return bundle.manifest


def places_of(manifest: Manifest) -> list[str]:
    return [one.place for one in manifest.placings["portable"].submodels.values()]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "m.nnd"
    compiled(path, BOTH)
    return path


@pytest.fixture
def one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    core = min(os.sched_getaffinity(0))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {core})


def test_a_chain_that_is_too_large_for_one_place_is_cut_where_least_crosses(tmp_path) -> None:
    manifest = compiled(tmp_path / "m.nnd", BOTH)
    first, second = manifest.submodels
    assert (first.outputs, second.inputs) == (("v3",), ("v3",))
    placing = manifest.placings["portable"]
    assert places_of(manifest) == ["cpu:0", "cpu:1"]
    assert placing.value_bytes == {"v0": 4 * ROWS * SIZES[0], "v3": 4 * ROWS * SIZES[3], "v6": 4 * ROWS * SIZES[6]}
    one, other = placing.submodels.values()
    assert (one.weight_bytes, other.weight_bytes) == (
        4 * (64 * 256 + 256 * 256 + 256 * 32),
        4 * (32 * 256 + 256 * 256 + 256 * 8),
    )
    assert one.peak_bytes == 4 * ROWS * (256 + 256), "two layers' values are alive at once"


def test_without_limits_a_chain_stays_on_one_place_unless_the_rate_counts(tmp_path) -> None:
    assert places_of(compiled(tmp_path / "m.nnd", "cpu:0,cpu:1")) == ["cpu:0"]
    manifest = compiled(tmp_path / "m.nnd", "cpu:0,cpu:1", objective="throughput")
    assert places_of(manifest) == ["cpu:0", "cpu:1"]
    first, second = (one.weight_bytes for one in manifest.placings["portable"].submodels.values())
    assert 0.5 < first / second < 2


CHILD = """
import json, os, sys
from pathlib import Path
import nndeploy
from layers_in_a_line import INPUT, assert_right
from nndeploy.runtime import core_pool
from nndeploy.runtime.chain import ChainStep

def cores_of_threads():
    # of each thread of this process, as Linux lists them
    threads = {thread.name: (thread / "status").read_text() for thread in Path("/proc/self/task").iterdir()}
    return {name: text.split("Cpus_allowed_list:")[1].split()[0] for name, text in threads.items()}

ran, run = [], ChainStep.__call__
ChainStep.__call__ = lambda step, values: (ran.append(sorted(os.sched_getaffinity(0))), run(step, values))[1]
core_pool.NODES = Path(sys.argv[2])
before = cores_of_threads()
with nndeploy.load_bundle(sys.argv[1]) as program:
    assert_right(program.run(INPUT))
    begun = {cores for thread, cores in cores_of_threads().items() if thread not in before}
print(json.dumps({
    "where": program.chain.where, "warnings": program.warnings, "ran": ran,
    "begun": sorted(begun), "own": sorted(os.sched_getaffinity(0)),
}))
"""


def placed_run(bundle: Path, nodes: Path) -> dict[str, Any]:
    """Returns what a child saw of the cores: threads that earlier tests left here may begin others at any time."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", CHILD, str(bundle), str(nodes)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    said: dict[str, Any] = json.loads(done.stdout)
    assert (said["where"], said["warnings"]) == ("cpu:0, cpu:1", [])
    assert said["own"] == sorted(os.sched_getaffinity(0)), "the caller's thread is not bound"
    return said


def add_nodes(folder: Path) -> list[list[int]]:
    """Writes into a folder, as Linux has it, that the cores of this machine are of two nodes; returns these."""
    cores = sorted(os.sched_getaffinity(0))
    nodes = [cores[: len(cores) // 2], cores[len(cores) // 2 :]]
    for number, node in enumerate(nodes):
        (folder / f"node{number}").mkdir()
        (folder / f"node{number}" / "cpulist").write_text(",".join(map(str, node)))
    return nodes


@TWO_CORES
@pytest.mark.parametrize("backend", ["native", "onnxruntime"])
def test_each_submodel_runs_on_the_node_of_its_pool_alone(tmp_path, backend) -> None:
    path = tmp_path / "m.nnd"
    compiled(path, BOTH, backends=(backend,))
    nodes = add_nodes(tmp_path)
    said = placed_run(path, tmp_path)
    assert said["ran"] == nodes
    assert len(said["begun"]) == 2, "every thread that was begun is bound to the cores of one pool"


@TWO_CORES
@pytest.mark.parametrize("backend", ["native", "onnxruntime"])
def test_pools_on_one_node_are_bound_to_no_core(tmp_path, backend) -> None:
    path = tmp_path / "m.nnd"
    compiled(path, BOTH, backends=(backend,))
    said = placed_run(path, tmp_path)
    assert said["ran"] == [sorted(os.sched_getaffinity(0))] * 2
    assert len(said["begun"]) <= 1, "all threads may use all cores"


@TWO_CORES
def test_places_at_load_go_before_those_of_the_bundle(bundle) -> None:
    options = nndeploy.LoadOptions(places=places_in("cpu:0=1MiB,cpu:1=1MiB"))
    with nndeploy.load_bundle(bundle, options) as program:
        assert [program.chain.place_of(one).name for one in program.chain.submodels] == ["cpu:0", "cpu:0"]
        assert_right(program.run(INPUT))


LACKS = r"there is no device cpu:1: this process has 1 core, too few for 2 pools"


def test_a_machine_that_lacks_a_place_runs_on_the_whole_cpu_and_says_so(bundle, one_core) -> None:
    with nndeploy.load_bundle(bundle) as program:
        (line,) = program.warnings
        assert line == (
            "the chain portable runs on the CPU, not as the bundle places it: portable: "
            "there is no device cpu:1: this process has 1 core, too few for 2 pools"
        )
        assert_right(program.run(INPUT))


@pytest.mark.parametrize("options", [{"strict": True}, {"places": places_in("cpu:0,cpu:1")}], ids=["strict", "places"])
def test_a_place_that_must_be_there_and_is_not_is_an_error(bundle, one_core, options) -> None:
    with pytest.raises(UnavailableError, match=LACKS) as caught:
        nndeploy.load_bundle(bundle, nndeploy.LoadOptions(**options))
    assert caught.value.exit_code == 69


def test_says_which_submodel_no_place_takes(bundle) -> None:
    options = nndeploy.LoadOptions(places=places_in("cpu:0=300KiB,cpu:1=350KiB"))
    message = r"submodel s0 needs 416\.0 KiB, the largest place, cpu:1, has 350\.0 KiB"
    with pytest.raises(UnavailableError, match=message) as caught:
        nndeploy.load_bundle(bundle, options)
    assert caught.value.exit_code == 69


@pytest.mark.parametrize(
    ("place", "code", "line"),
    [
        ("cpu:0=200KiB,cpu:1=100KiB", 69, "node 'matmul1' needs 320.0 KiB, the largest place, cpu:0, has 200.0 KiB"),
        (
            "cpu:0=400KiB,cpu:1=100KiB",
            69,
            "the chain needs 712.0 KiB on one place, and does not fit the places from node 'tanh3' on: "
            "cpu:0 has 400.0 KiB, cpu:1 has 100.0 KiB",
        ),
        ("cuda:0=1GiB,cpu", 69, "--place cuda:0=1073741824,cpu names GPUs, but no target has one"),
        ("gpu:0,cpu", 2, "there is no device 'gpu:0' (hint: did you mean 'cuda:0'?)"),
        ("cpu:0=few", 2, "--place cpu:0: 'few' is not a size"),
    ],
)
def test_the_command_says_in_one_line_what_is_wrong(tmp_path, capfd, place, code, line) -> None:
    onnx.save(network(), tmp_path / "m.onnx")
    out = tmp_path / "m.nnd"
    assert run_command(["compile", str(tmp_path / "m.onnx"), "-o", str(out), "--place", place]) == code
    errors = [said for said in capfd.readouterr().err.splitlines() if "nndeploy: error" in said]
    assert len(errors) == 1
    assert line in errors[0]
    assert not out.exists()


def test_boxes_with_different_places_share_no_portable_chain(tmp_path) -> None:
    boxes = [
        nndeploy.Target(name, "x86_64", places=places_in(place)) for name, place in (("a", BOTH), ("b", "cpu:0,cpu:1"))
    ]
    with pytest.raises(UsageError, match="a and b have different devices, but share one portable chain"):
        compile_with(network(), tmp_path / "m.nnd", targets=tuple(boxes))


@TWO_CORES
@pytest.mark.parametrize("has_nodes", [False, True])
def test_runs_over_pools_sleep_in_each_on_the_threads_of_its_node(tmp_path, monkeypatch, has_nodes) -> None:
    compiled(tmp_path / "m.nnd", BOTH, pace=True)
    if has_nodes:
        add_nodes(tmp_path)
    monkeypatch.setattr(core_pool, "NODES", tmp_path)
    cores, run = list[set[int]](), ChainStep.__call__
    monkeypatch.setattr(
        ChainStep, "__call__", lambda step, values: (cores.append(os.sched_getaffinity(0)), run(step, values))[1]
    )
    with nndeploy.load_bundle(tmp_path / "m.nnd", pace=PaceGoal(max_latency_ns=100_000_000)) as program:
        for _ in range(3):
            assert_right(program.run(INPUT))
        pacer = program.pacing.pacer
        of = {point.name: point.submodel for point in program.pacing.points}
        asleep = {of[point.name] for point in pacer.plan() if point.delay_us > 1000}
    assert (cores[-1] != cores[-2]) == has_nodes
    assert max(record.slept for record in pacer.records) > 50_000_000
    assert asleep == set(of.values())


def test_items_of_a_stream_over_pools_of_several_nodes_are_not_paced(tmp_path, monkeypatch) -> None:
    compiled(tmp_path / "m.nnd", BOTH, pace=True)
    add_nodes(tmp_path)
    monkeypatch.setattr(core_pool, "NODES", tmp_path)
    with pytest.raises(UsageError, match="have threads of their own, on which items of a stream cannot be paced"):
        nndeploy.load_bundle(tmp_path / "m.nnd", pace=PaceGoal(max_latency_ns=10**9, is_of_item=True))


def test_compile_and_inspect_show_the_places_and_what_crosses(tmp_path, capfd) -> None:
    onnx.save(network(), tmp_path / "m.onnx")
    command = ["compile", str(tmp_path / "m.onnx"), "--backends", "native", "--objective", "priority", "--place", BOTH]
    for arguments in (
        [*command, "--dry-run"], [*command, "-o", str(tmp_path / "m.nnd")], ["inspect", str(tmp_path / "m.nnd")],
    ):  # fmt: skip
        assert run_command(arguments) == 0
        shown = [" ".join(line.split()) for line in capfd.readouterr().out.splitlines()]
        assert "s0 cpu:0 352.0 KiB 64.0 KiB 0 B" in shown
        assert "s1 cpu:1 296.0 KiB 64.0 KiB 4.0 KiB" in shown
        assert "in a call of the chain portable 4.0 KiB cross between places" in shown


def test_memory_is_counted_at_the_largest_sizes(tmp_path) -> None:
    model = network()
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "N"
    asked = {"backends": ("native",), "objective": "priority", "keep_fallback": False, "shapes": {"N": "1..96:1"}}
    options = nndeploy.CompileOptions(places=places_in("cpu:0,cpu:1"), **asked)
    nndeploy.compile_model(model, tmp_path / "m.nnd", options)
    with open_bundle(tmp_path / "m.nnd") as bundle:
        (one,) = bundle.manifest.placings["portable"].submodels.values()
    assert one.peak_bytes == 4 * 96 * (256 + 256)
    options = nndeploy.CompileOptions(places=places_in("cpu:0=400KiB,cpu:1=400KiB"), **asked)
    with pytest.raises(UnavailableError, match=r"node 'matmul1' needs 448\.0 KiB, the largest place, cpu:0, has 400"):
        nndeploy.compile_model(model, tmp_path / "m.nnd", options)
