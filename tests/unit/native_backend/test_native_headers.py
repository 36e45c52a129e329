# SPDX-License-Identifier: Apache-2.0
"""The headers of c/: numbers that isa.py repeats, each compiles alone, and inner loops keep their sums in registers."""

from pathlib import Path

import numpy as np
import pytest
from native_models import needs_zig
from native_programs import Case, Program, run_command, zig
from nndeploy_native.isa import ISAS, Isa
from nndeploy_native.library import HEADERS
from nndeploy_native.packing import panels
from nndeploy_native.steps.convolution import Convolution, Window
from nndeploy_native.steps.inverted_residual import InvertedResidual
from nndeploy_native.steps.recurrent import GATES, Lstm, most_sequences
from nndeploy_native.steps.separable import Separable
from nndeploy_native.steps.step import Epilogue, Machine, NativeStep
from nndeploy_native.tensors import Layout, Tensor

EACH_ISA = pytest.mark.parametrize("isa", ISAS, ids=lambda isa: isa.name)
ONE = Window((1, 1))
UNUSED = ("-shared", "-s", "-Wl,--build-id=none", "-pthread")


@EACH_ISA
def test_numbers_of_the_instruction_set_are_those_of_the_header(isa: Isa, tmp_path: Path) -> None:
    needs_zig()
    numbers = {"LANES": isa.lanes, "PANEL": isa.panel, "ACCUMULATORS": isa.accumulators, "GROUP": isa.group}
    most = f'#include "recurrent.h"\n_Static_assert(NND_MOST_SEQUENCES == {most_sequences(isa)}, "most_sequences");\n'
    asserts = "".join(f'_Static_assert(NND_{name} == {value}, "{name}");\n' for name, value in numbers.items())
    size = f'_Static_assert(sizeof(nnd_elem) == {isa.elem_bytes}, "elem_bytes");\n'
    (tmp_path / "numbers.c").write_text(f'#include "pointwise.h"\n{asserts}{size}{most}')
    run_command(zig(isa, "numbers.c", "-o", "numbers.so"), tmp_path)


@EACH_ISA
def test_every_header_compiles_alone(isa: Isa, tmp_path: Path) -> None:
    needs_zig()
    names = sorted(path.name for path in HEADERS.glob("*.h"))
    for name in names:
        (tmp_path / f"{name}.c").write_text(f'#define NND_STEPS 1\n#include "{name}"\n')
    assert len(names) > 10
    run_command(zig(isa, *(f"{name}.c" for name in names), "-o", "all.so"), tmp_path)


@EACH_ISA
@pytest.mark.parametrize("outputs", [1, 15, 16, 17, 33, 48, 64, 65, 80, 100, 1000])
def test_panels_cover_each_block_once(outputs: int, isa: Isa) -> None:
    assert sum(panels(outputs, isa)) == isa.blocks(outputs)
    assert set(panels(outputs, isa)[:-1]) <= {isa.panel}
    assert panels(outputs, isa)[-1] <= 4  # what the tile's array of weights holds
    assert isa.panel != 2 or outputs <= isa.lanes or panels(outputs, isa)[-1] > 1


@EACH_ISA
@pytest.mark.parametrize("kernel", ["pointwise", "inverted_residual", "lstm"])
def test_the_micro_kernel_does_not_spill(kernel: str, isa: Isa, tmp_path: Path) -> None:
    needs_zig()
    (tmp_path / "kernels.c").write_text(Program([_case(kernel, isa)]).source)
    run_command(
        zig(isa, "-S", "-Wno-unused-command-line-argument", "kernels.c", "-o", "kernels.s", without=UNUSED), tmp_path
    )
    x86 = isa.arch == "x86_64"
    stack = ("(%rsp", "(%rbp") if x86 else ("[sp", "[x29")
    register, multiply = ("mm", ("vfmadd", "vdpbf16ps")) if x86 else ("q", ("fmla",))
    loops = inner_loops((tmp_path / "kernels.s").read_text())
    sums = GATES * most_sequences(isa) if kernel == "lstm" else isa.accumulators
    tiles = [loop for loop in loops if sum(any(one in line for one in multiply) for line in loop) >= sums]
    tiles = [loop for loop in tiles if not any("div" in line for line in loop)]  # of an activation
    assert tiles
    for loop in tiles:
        assert not [line for line in loop if register in line and any(place in line for place in stack)]


def _case(kernel: str, isa: Isa) -> Case:
    """Returns a step of whole panels, with tiles of all accumulators."""
    if kernel == "lstm":
        gates, y = Tensor("gates", (9, 35, 1, 256)), Tensor("y", (9, 35, 1, 64))
        walk = Lstm(y, gates, np.ones((1, 256, 64), np.float32), None, None, is_reverse=False)
        return Case(kernel, walk, Machine(isa), {"gates": np.zeros(gates.shape)}, np.zeros(y.shape))
    x = Tensor("x", (1, 64, 56, 60), Layout.BLOCKED)
    hidden, first, y = (Tensor(name, (1, 128, 56, 60), Layout.BLOCKED) for name in ("h", "d", "y"))
    relu = Epilogue(("relu", ("operand", 0)))
    expand = Convolution(hidden, x, np.ones((128, 64, 1, 1), np.float32), None, ONE, epilogue=relu)
    step: NativeStep = expand
    if kernel == "inverted_residual":
        taps, weights = np.ones((128, 1, 3, 3), np.float32), np.ones((128, 128, 1, 1), np.float32)
        depthwise = Convolution(first, hidden, taps, None, Window((3, 3), pads=(1, 1)), 128, relu)
        step = InvertedResidual(expand, Separable(depthwise, Convolution(y, first, weights, None, ONE)))
    return Case(kernel, step, Machine(isa), {"x": np.zeros(x.shape, np.float32)}, np.zeros(y.shape))


def inner_loops(assembly: str) -> list[list[str]]:
    """Returns the lines of each loop without a label inside: from a label to the branch back to it."""
    loops, label, inner = list[list[str]](), "", list[str]()
    for line in assembly.splitlines():
        if line.startswith(".LBB"):
            label, inner = line.split(":")[0], []
        inner.append(line)
        if label and line.split()[-1:] == [label]:
            loops.append(inner)
    return loops
