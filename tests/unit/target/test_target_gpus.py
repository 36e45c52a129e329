# SPDX-License-Identifier: Apache-2.0
"""GPUs of a target: TOML in and out, what a host must offer, what a machine says of itself."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nndeploy.cuda.current_driver import injected_driver
from nndeploy.errors import DataError
from nndeploy.target.target import Gpu, Target, capability_number, host_target, target_from_toml, target_to_toml, unmet
from nndeploy.testing.host_driver import HostDriver, HostGpu

TARGETS = Path(__file__).resolve().parents[3] / "configs" / "targets"
WITH_GPU = [path for path in sorted(TARGETS.glob("*.toml")) if "[[gpus]]" in path.read_text()]
ADA = Gpu("NVIDIA GeForce RTX 4090", "8.9")
TURING = Gpu("Tesla T4", "7.5")
BLACKWELL = Gpu("NVIDIA GeForce RTX 5090", "12.0")


def box(*gpus: Gpu) -> Target:
    return Target("box", "x86_64", gpus=gpus)


def read(tmp_path: Path, text: str) -> Target:
    path = tmp_path / "box.toml"
    path.write_text('arch = "x86_64"\n' + text, encoding="utf-8")
    return target_from_toml(path)


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises(DataError) as caught:
        read(tmp_path, text)
    return str(caught.value)


def test_reads_gpus_in_their_order_with_a_sorted_hashable_descriptor(tmp_path: Path) -> None:
    target = read(tmp_path, """
[[gpus]]
name = "B"
compute_capability = "8.9"
memory_bytes = 5
[gpus.cudnn]
warpSize = 32
deviceName = "B"
maxGridSize = [3, 2, 1]
[[gpus]]
name = "A"
compute_capability = "12.0"
""")  # fmt: skip
    descriptor = (("deviceName", "B"), ("maxGridSize", (3, 2, 1)), ("warpSize", 32))
    assert target.gpus == (Gpu("B", "8.9", 5, descriptor), Gpu("A", "12.0"))
    assert isinstance(hash(target), int)


@pytest.mark.parametrize(("gpu", "said"), [
    ('name = "A"', "the key 'compute_capability' is missing"),
    ('compute_capability = "8.9"', "the key 'name' is missing"),
    ('name = "A"\ncompute_capability = "8"', "not a compute capability: '8'"),
    ('name = "A"\ncompute_capability = "8.9 "', "not a compute capability: '8.9 '"),
    ('name = "A"\ncompute_capability = 8.9', "compute_capability must be a str, not 8.9"),
    ('name = "A"\ncompute_capability = "8.9"\nmemory_bytes = -1', "memory_bytes is negative"),
    ('name = "A"\ncompute_capability = "8.9"\nmemory_bytes = true', "memory_bytes must be a int, not True"),
    ('name = "A"\ncompute_capability = "8.9"\nmemory = 1', "did you mean 'memory_bytes'?"),
    ('name = "A"\ncompute_capability = "8.9"\ncudnn = 3', "cudnn must be a dict, not 3"),
    ('name = "A"\ncompute_capability = "8.9"\n[gpus.cudnn]\nx = 1.5', "cudnn.x must be an int, a text or a list"),
    ('name = "A"\ncompute_capability = "8.9"\n[gpus.cudnn]\nx = [true]', "cudnn.x must be an int, a text or a list"),
    ('name = "A"\ncompute_capability = "8.9"\n[gpus.cudnn]\n"a b" = 1', "cudnn has a malformed key 'a b'"),
])  # fmt: skip
def test_refuses_a_malformed_gpu_and_says_which(tmp_path: Path, gpu: str, said: str) -> None:
    message = refusal(tmp_path, f'[[gpus]]\nname = "first"\ncompute_capability = "8.0"\n[[gpus]]\n{gpu}\n')
    assert said in message
    assert "gpus[1]" in message


def test_refuses_gpus_that_are_no_tables(tmp_path: Path) -> None:
    assert "gpus must be at most 64 tables" in refusal(tmp_path, "gpus = [1]")
    assert "gpus must be a list" in refusal(tmp_path, 'gpus = "rtx4090"')


def test_refuses_versions_that_are_no_texts(tmp_path: Path) -> None:
    assert "libraries must map a backend to a version as text" in refusal(tmp_path, "[libraries]\ncudnn = 9.28")


def test_refuses_more_gpus_than_a_machine_has(tmp_path: Path) -> None:
    many = '[[gpus]]\nname = "A"\ncompute_capability = "8.0"\n' * 65
    assert "gpus must be at most 64 tables" in refusal(tmp_path, many)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
descriptors = st.dictionaries(
    st.text("abcXYZ019_", min_size=1, max_size=8),
    st.integers(-(2**63), 2**63 - 1) | texts | st.lists(st.integers(0, 2**40), max_size=3).map(tuple),
    max_size=4,
).map(lambda found: tuple(sorted(found.items())))
gpus = st.builds(Gpu, texts, st.from_regex(r"[0-9]{1,2}\.[0-9]", fullmatch=True), st.integers(0, 2**50), descriptors)


libraries = st.dictionaries(texts, texts, max_size=3).map(lambda found: tuple(sorted(found.items())))


@given(found=st.lists(gpus, max_size=3).map(tuple), name=texts, versions=libraries)
def test_reading_what_was_written_gives_an_equal_target(
    tmp_path_factory: pytest.TempPathFactory, found: tuple[Gpu, ...], name: str, versions: tuple[tuple[str, str], ...],
) -> None:  # fmt: skip
    target = Target(name, "aarch64", ("fp",), (("l1", 5),), 3, gpus=found, libraries=versions)
    path = tmp_path_factory.getbasetemp() / "round-trip.toml"
    path.write_text(target_to_toml(target), encoding="utf-8")
    assert target_from_toml(path) == target


@pytest.mark.parametrize(("gpus", "requires", "reason"), [
    ((ADA,), {}, ""), ((), {}, ""), ((ADA,), {"compute_capability": ["8.9"]}, ""),
    ((TURING, ADA), {"compute_capability": ["8.9"]}, ""), ((ADA,), {"compute_capability_min": "8.0"}, ""),
    ((BLACKWELL,), {"compute_capability_min": "8.0"}, ""), ((ADA,), {"compute_capability_min": "8.9"}, ""),
    ((ADA,), {"compute_capability": ["8.6"]},
     "needs an NVIDIA GPU of compute capability 8.6, this machine has 8.9 (NVIDIA GeForce RTX 4090)"),
    ((TURING,), {"compute_capability_min": "8.0"},
     "needs an NVIDIA GPU of compute capability 8.0 or later, this machine has 7.5 (Tesla T4)"),
    ((ADA,), {"compute_capability_min": "12.0"},
     "needs an NVIDIA GPU of compute capability 12.0 or later, this machine has 8.9 (NVIDIA GeForce RTX 4090)"),
    ((), {"compute_capability": ["8.9"]}, "needs an NVIDIA GPU of compute capability 8.9, this machine has none"),
    ((ADA,), {"compute_capability": ["8.6", "8.9"]}, ""),
    ((TURING,), {"compute_capability": ["8.6", "8.9"]},
     "needs an NVIDIA GPU of compute capability 8.6 or 8.9, this machine has 7.5 (Tesla T4)"),
    ((ADA,), {"compute_capability": ["8.9", 7]}, "not a compute capability: 7"),
    ((ADA,), {"compute_capability": [8.9]}, "not a compute capability: 8.9"),
    ((ADA,), {"compute_capability_min": "new"}, "not a compute capability: 'new'"),
])  # fmt: skip
def test_says_why_a_host_cannot_take_gpu_code(gpus: tuple[Gpu, ...], requires: dict[str, object], reason: str) -> None:
    assert unmet(requires, box(*gpus)) == reason


def test_says_why_this_machine_can_use_no_gpu() -> None:
    with injected_driver(HostDriver(gpus=())):
        reason = unmet({"compute_capability": ["8.9"]}, Target("host", "x86_64", is_host=True))
    assert reason.endswith("this machine has none: there is an NVIDIA driver but no GPU")


def test_compute_capabilities_compare_by_number() -> None:
    assert capability_number("12.0") > capability_number("8.9") > capability_number("8.6")


def test_the_host_target_names_what_its_driver_names() -> None:
    attributes = {
        "COMPUTE_CAPABILITY_MAJOR": 8, "COMPUTE_CAPABILITY_MINOR": 6, "MULTIPROCESSOR_COUNT": 82, "MAX_GRID_DIM_X": 7,
    }  # fmt: skip
    with injected_driver(HostDriver(gpus=[HostGpu("A", 100, attributes), HostGpu("B", 200, attributes)])):
        found = host_target.__wrapped__().gpus
    assert [(gpu.name, gpu.compute_capability, gpu.memory_bytes) for gpu in found] == [
        ("A", "8.6", 100),
        ("B", "8.6", 200),
    ]
    descriptor = dict(found[1].cudnn)
    assert descriptor["deviceVer"] == 860
    assert descriptor["multiProcessorCount"] == 82
    assert descriptor["maxGridSize"] == (7, 0, 0)
    assert descriptor["totalGlobalMem"] == 200


@pytest.mark.parametrize("path", WITH_GPU, ids=lambda path: path.stem)
def test_a_shipped_gpu_target_has_the_whole_descriptor_and_agrees_with_itself(path: Path) -> None:
    with injected_driver(HostDriver()):
        needed = set(dict(host_target.__wrapped__().gpus[0].cudnn))
    for gpu in target_from_toml(path).gpus:
        descriptor = dict(gpu.cudnn)
        major, minor = capability_number(gpu.compute_capability)
        assert set(descriptor) == needed
        assert descriptor["deviceName"] == gpu.name
        assert descriptor["deviceVer"] == 100 * major + 10 * minor
        assert descriptor["totalGlobalMem"] == gpu.memory_bytes > 2**32
        assert all(isinstance(value, int) for key, value in gpu.cudnn if key not in _NOT_NUMBERS)


_NOT_NUMBERS = ("deviceName", "maxGridSize", "maxBlockSize")
PEAK_GB_S = {"rtx4090": 1008, "rtx3090": 936, "rtx5090": 1792, "t4": 320, "jetson-orin": 205, "h200": 4800}


@pytest.mark.parametrize("path", WITH_GPU, ids=lambda path: path.stem)
def test_bus_width_and_memory_clock_give_the_published_bandwidth(path: Path) -> None:
    (gpu,) = target_from_toml(path).gpus
    descriptor = dict(gpu.cudnn)
    bytes_per_second = 2 * descriptor["memClockRateKHz"] * 1000 * descriptor["memoryBusWidth"] / 8
    assert bytes_per_second / 1e9 == pytest.approx(PEAK_GB_S[path.stem], rel=0.03)


def test_all_promised_targets_are_shipped_under_their_own_names() -> None:
    promised = {
        "rtx4090", "rtx3090", "rtx5090", "t4", "jetson-orin", "h200", "raspberry-pi-5", "x86-64-v3", "x86-64-v4",
    }  # fmt: skip
    found = {path.stem: target_from_toml(path).name for path in TARGETS.glob("*.toml")}
    assert promised <= set(found)
    assert all(stem == name for stem, name in found.items())
