# SPDX-License-Identifier: Apache-2.0
"""Block sizes: the table's rule, and the measured choice where a GPU is present."""

import ctypes
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nndeploy_triton.autotune import Tuner, _gpu_here, tile_of_table
from nndeploy_triton.compile_kernels import CompiledKernel
from nndeploy_triton.gpu import GpuFacts, facts_of
from nndeploy_triton.kernel_specs import KernelSpec
from nndeploy_triton.steps.matmul import Matmul
from nndeploy_triton.steps.step import power_of_two
from nndeploy_triton.tiles import axis_tiles, flat_tiles, matrix_tiles, plane_tiles, row_tiles
from nndeploy_triton.views import dense

from nndeploy import cuda
from nndeploy.cuda.current_driver import injected_driver
from nndeploy.errors import BuildRefusedError
from nndeploy.target.target import Gpu, Target
from nndeploy.testing.host_driver import HostDriver, Launch
from nndeploy.values.size import Dim, symbol

GPUS = [facts_of(Gpu("T4", "7.5")), facts_of(Gpu("RTX 4090", "8.9")), facts_of(Gpu("H200", "9.0"))]


@given(
    st.sampled_from(GPUS), st.integers(1, 5000), st.integers(1, 5000), st.integers(1, 5000), st.integers(1, 64),
    st.sampled_from([2, 4]),
)  # fmt: skip
def test_a_matrix_tile_fits_the_gpu_and_is_no_larger_than_the_matrix(
    gpu: GpuFacts, rows: int, columns: int, depth: int, batch: int, element_bytes: int
) -> None:
    for tile in matrix_tiles(gpu, rows, columns, depth, batch, element_bytes):
        assert tile.shared_bytes(element_bytes) <= gpu.shared_bytes
        assert 16 <= tile.rows < max(17, 2 * rows)
        assert 16 <= tile.columns < max(17, 2 * columns)
        assert tile.depth in (16, 32)


def test_a_large_product_takes_large_tiles_and_a_small_one_fills_the_gpu() -> None:
    gpu = replace(GPUS[1], num_multiprocessors=128)
    large = matrix_tiles(gpu, 4096, 4096, 1024, 1, 2)[0]
    small = matrix_tiles(gpu, 256, 256, 1024, 1, 2)[0]
    assert (large.rows, large.columns) == (128, 128)
    assert (256 // small.rows) * (256 // small.columns) >= 128


def test_every_tile_is_listed_once_and_the_choice_comes_first() -> None:
    found = matrix_tiles(GPUS[1], 512, 512, 512, 1, 4)
    assert len(found) == len(set(found)) > 5


@given(st.integers(1, 10**6), st.integers(1, 2000))
def test_other_tiles_are_powers_of_two_and_keep_a_block_small(size: int, other: int) -> None:
    tiles = [*flat_tiles(size), *plane_tiles(size, other), *axis_tiles(size, other), *row_tiles(size)]
    for tile in tiles:
        sizes = [block for _, block in tile.blocks]
        assert all(block & (block - 1) == 0 for block in sizes)
        assert np.prod(sizes) <= 8192
        assert 1 <= tile.num_warps <= 8


@pytest.mark.parametrize(("size", "rounded"), [(0, 1), (1, 1), (2, 2), (3, 4), (64, 64), (65, 128), (1000, 128)])
def test_powers_of_two_are_rounded_up_and_bounded(size: int, rounded: int) -> None:
    assert power_of_two(size, 128) == rounded


def test_facts_come_from_the_descriptor_or_from_the_kind_of_gpu() -> None:
    described = Gpu("A", "8.9", cudnn=(("maxSharedMemoryPerBlockOptin", 5), ("multiProcessorCount", 7)))
    assert facts_of(described) == GpuFacts((8, 9), 7, 5)
    assert facts_of(Gpu("A", "9.0")).shared_bytes == 232448
    assert facts_of(Gpu("A", "12.0")).arch == 120


def product_of(rows: Dim) -> Matmul:
    sides = dense("a", "float32", (1, rows, 64)), dense("b", "float32", (1, 64, 64))
    return Matmul(dense("y", "float32", (rows, 64)), *sides)


STEP = product_of(64)


class PretendedTime:
    """A GPU on which a launch takes as long as a table says, by the tile in the kernel's name."""

    def __init__(self, nanoseconds: dict[str, int]) -> None:
        self.now, self.nanoseconds, self.compiled = 0, nanoseconds, list[str]()
        self.pointers: set[int] = set()

    def compile(self, spec: KernelSpec, gpu: GpuFacts) -> CompiledKernel:
        tile = spec.name.split("_")[-2]
        self.compiled.append(tile)
        if tile not in self.nanoseconds:
            raise BuildRefusedError("does not compile")
        return CompiledKernel(tile.encode(), tile, 0, (("out", "tensor"), ("left", "tensor"), ("right", "tensor")), 2)

    def run(self, launch: Launch) -> None:
        self.now += self.nanoseconds[launch.kernel]
        for argument, num_bytes in zip(launch.args[:3], (64 * 64 * 4,) * 3, strict=True):
            ctypes.memset(int.from_bytes(argument, "little"), 0, num_bytes)  # all of it must be memory


@pytest.mark.parametrize("step", [STEP, product_of(symbol("n", 1, 127))], ids=["fixed", "in the middle of a range"])
def test_the_fastest_candidate_is_chosen_and_equal_steps_are_measured_once(step: Matmul) -> None:
    gpu = facts_of(Gpu("RTX 4090", "8.9"))
    names = [str(tile) for tile in step.tiles(gpu)[:6]]
    time = PretendedTime({name: 100 - 10 * number for number, name in enumerate(names[:5])})
    driver = HostDriver(run_kernel=time.run)
    with injected_driver(driver):
        tuner = Tuner(cuda.device(0), time.compile, lambda: time.now)
        assert str(tuner.choose(step, gpu)) == names[4]
        num_compiled = len(time.compiled)
        other = replace(step, left=replace(step.left, name="other"))
        assert tuner.choose(other, gpu) == tuner.choose(step, gpu)
    assert len(time.compiled) == num_compiled == 6
    assert driver.live_bytes == 0


def test_without_a_measurement_the_table_decides() -> None:
    gpu = facts_of(Gpu("RTX 4090", "8.9"))
    assert tile_of_table(STEP, gpu) == STEP.tiles(gpu)[0]


@pytest.mark.parametrize(("target", "is_here"), [
    (Target("host", "x86_64", is_host=True, gpus=(Gpu("A", "8.9"),)), True),
    (Target("host", "x86_64", is_host=True, gpus=(Gpu("A", "8.6"),)), False),
    (Target("host", "x86_64", is_host=True, gpus=(Gpu("A", "8.9"), Gpu("B", "8.6"))), False),
    (Target("box", "x86_64", gpus=(Gpu("A", "8.9"),)), False), (Target("host", "x86_64", is_host=True), False),
])  # fmt: skip
def test_only_this_machines_own_gpu_is_measured(target: Target, is_here: bool) -> None:
    with injected_driver(HostDriver()):
        assert (_gpu_here(target) is not None) == is_here
    with injected_driver(HostDriver(gpus=())):
        assert _gpu_here(target) is None
