# SPDX-License-Identifier: Apache-2.0
"""Whole networks as they are built, many in one library, each array in memory of its own (network_driver.c).

Lowering, fusion, packing, scratch, arena and C source are those of a build; what differs is where values lie: each is
reached by an address of its own, so that what is touched outside of one is seen and not what happens to lie there.
`sets` are the instruction sets as this machine can run them: the widths of vectors and blocks of another set are
compiled for the instructions that are here. Kernels are compiled once a library, for any sizes, and not once a step,
which takes a tenth of the time; what they touch is the same. `as_built` compiles them as a build does.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

import numpy as np
import onnx_ir as ir
from native_models import Array
from native_programs import run_command, zig
from nndeploy_native.arena import arena_of
from nndeploy_native.emit import sources_of, step_sources
from nndeploy_native.fusion import fused
from nndeploy_native.isa import ISAS, Isa
from nndeploy_native.lowering.table import lower
from nndeploy_native.size_table import SizeTable
from nndeploy_native.steps.step import Call, Machine
from nndeploy_native.tensors import Tensor, padded

from nndeploy.values.size import Dim, Size, evaluated
from nndeploy.values.solving import solved_symbols
from nndeploy.values.types import DimRange

HERE = Path(__file__).parent
LAYOUTS = {"each at its end": 0, "each at its beginning": 1, "in the planned arena": 2}
_C_TYPES = {"float32": "float", "int32": "int32_t", "uint16": "uint16_t"}
_C_ELEMENTS = {"fp32": "float", "int32": "int32_t", "int64": "int64_t"}
_HOOK = """
__attribute__((visibility("default"))) char *(*nnd_scratch_for)(int step, int worker);
#define NND_BEFORE_STEP(step, worker) scratch = nnd_scratch_for(step, worker);
#define NND_AFTER_STEP(step, worker)
"""
_BF16 = """
#include "vector.h"
NND_INLINE vf nnd_dot(vf sum, nnd_pairs w, nnd_pairs x) {
  const nnd_words a = (nnd_words)w, b = (nnd_words)x;
  return sum + (vf)(a & 0xffff0000u) * (vf)(b & 0xffff0000u) + (vf)(a << 16) * (vf)(b << 16);
}
#define __builtin_ia32_dpbf16ps_512 nnd_dot
__attribute__((weak, visibility("hidden"), used)) __bf16 __truncsfbf2(float value) {
  const nnd_elem bits = nnd_to_elem(value);
  __bf16 result;
  memcpy(&result, &bits, sizeof result);
  return result;
}
"""
_ONCE = ("-DNND_INLINE=static __attribute__((unused))", "-DNND_UNROLL=", "-fno-inline", "-O1")
_WIDE = ("-D__AVX512F__", "-DNND_OPAQUE(x)=")  # no register here is as wide
_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Set:
    """An instruction set, and the flags that compile its widths for x86-64-v3."""

    isa: Isa
    flags: tuple[str, ...]
    prelude: str = ""


def sets() -> list[Set]:
    """Returns the instruction sets, all compiled for x86-64-v3."""
    v4, v3, aarch64, bf16 = ISAS
    return [
        Set(v3, ()),
        Set(v4, _WIDE),
        Set(aarch64, ("-U__AVX2__",)),
        Set(bf16, (*_WIDE, "-DNND_BF16"), _BF16),
    ]


@dataclass(frozen=True, eq=False)
class Network:
    """A model, what it is made for, and for each set of inputs the outputs in float64."""

    name: str
    model: ir.Model
    machine: Machine
    samples: tuple[tuple[Mapping[str, Array], Mapping[str, Array]], ...]
    ranges: Mapping[str, DimRange] = field(default_factory=dict)
    tolerance: float = 2e-4


@dataclass(frozen=True, slots=True)
class _Value:
    """A tensor that steps write: where it is wanted the outputs that it is, and its place in the arena, if any."""

    tensor: Tensor
    is_output: bool
    place: int


class Planned:
    """A network as a build plans it: its calls, its C source, and its memory."""

    def __init__(self, number: int, network: Network) -> None:
        """Plans; nothing is compiled yet."""
        self.number, self.network, self.isa = number, network, network.machine.isa
        self._lowered = lower(network.model, network.ranges)
        kept = {tensor.name for tensor in self._lowered.outputs.values()}
        steps = fused(self._lowered.steps, kept, network.machine)
        self.calls: list[Call] = [step.call(network.machine) for step in steps]
        self._inputs: list[Tensor] = list(self._lowered.inputs.values())
        self._constants: dict[str, tuple[int, Array]] = {}
        self._table = SizeTable(solved_symbols(one.memory_shape(self.isa.lanes) for one in self._inputs))
        arena = arena_of(steps, self._lowered, self.isa, self._table)
        self._values = self._values_of(arena.offsets)
        texts = step_sources(self.calls, self._place_of, self._table)
        self._arena_bytes = arena.most_bytes
        self._arena_entry = self._table.added(arena.num_bytes) if self._table.solved else -1
        self._scratch = [self._entry_or_size(call.scratch_bytes) for call in self.calls]
        self.sources = [_of_network(text, number) for text in sources_of(self.calls, texts, self._table)]

    @property
    def kernels(self) -> list[str]:
        """The kernels that it calls, in order."""
        return [call.kernel for call in self.calls]

    def request(self, inputs: Mapping[str, Array], workers: int, layout: int) -> bytes:
        """Returns what the driver reads."""
        symbols = self._symbols(inputs)
        given = [np.ascontiguousarray(inputs[one.name]) for one in self._inputs]
        constants = [array for _, array in self._constants.values()]
        head = [
            self.number, workers, layout, len(given) + len(constants), len(self._values), len(self.calls),
            len(self._table.solved), self._table.num_entries if self._table.solved else 0, self._arena_entry,
            self._arena_bytes,
        ]  # fmt: skip
        arrays = [[one.nbytes, one.itemsize, 0, 0] for one in given] + [[one.nbytes, 64, 0, 0] for one in constants]
        values = [
            [_number(one.tensor.num_bytes(self.isa), symbols), 64, one.is_output, one.place]
            for one in self._values.values()
        ]
        shapes = [array.shape for array in given]
        names = [one.name for one in self._inputs]
        solved = [one.value(names, shapes) for one in self._table.solved.values()]
        numbers = np.array([*head, *chain(*arrays, *values), *self._scratch, *solved], np.int64)
        return numbers.tobytes() + b"".join(one.tobytes() for one in (*given, *constants))

    def outputs_from(self, result: bytes, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Returns the outputs in the order of ONNX, by name, from what the driver wrote."""
        symbols, found, at = self._symbols(inputs), {}, 0
        for root, one in self._values.items():
            if not one.is_output:
                continue
            size = _number(one.tensor.num_bytes(self.isa), symbols)
            raw, at = np.frombuffer(result, np.uint8, size, at), at + size
            for name, tensor in self._lowered.outputs.items():
                if tensor.name == root:
                    found[name] = raw.view(np.float32).reshape([_number(dim, symbols) for dim in tensor.shape])
        return found

    def _values_of(self, offsets: Mapping[str, str]) -> dict[str, _Value]:
        outputs = {tensor.name for tensor in self._lowered.outputs.values()}
        found: dict[str, _Value] = {}
        for call in self.calls:
            name = call.output.name
            text = offsets.get(name, "0")
            entry = re.fullmatch(r"call->sizes\[(\d+)\]", text)
            place = -1 - int(entry[1]) if entry else int(text)
            if name not in found:
                found[name] = _Value(call.output, name in outputs, place)
        return found

    def _place_of(self, one: Tensor | Array) -> str:
        if not isinstance(one, Tensor):
            key = f"{one.dtype.str}{one.shape}{hash(one.tobytes())}"
            number, _ = self._constants.setdefault(key, (len(self._inputs) + len(self._constants), one))
            return f"(const {_C_TYPES[one.dtype.name]} *)call->inputs[{number}]"
        if one.name in self._lowered.constants:
            return self._place_of(self._lowered.constants[one.name])
        kind = "nnd_elem" if one.is_blocked else _C_ELEMENTS[one.element]
        names = [tensor.name for tensor in self._inputs]
        if one.name in names:
            return f"(const {kind} *)call->inputs[{names.index(one.name)}]"
        return f"({kind} *)call->outputs[{list(self._values).index(one.name)}]"

    def _entry_or_size(self, size: Dim) -> int:
        whole = padded(size, 64)
        if isinstance(size, int) and isinstance(whole, int):
            return size
        return -1 - self._table.added(self._table.code_of(size))

    def _symbols(self, inputs: Mapping[str, Array]) -> dict[str, int]:
        found: dict[str, int] = {}
        for one in self._inputs:
            for dim, size in zip(one.shape, inputs[one.name].shape, strict=True):
                if isinstance(dim, Size):
                    found.setdefault(str(dim)[1:-1], size)
        return found


def _number(size: Dim, symbols: Mapping[str, int]) -> int:
    return evaluated(size, symbols)


def _of_network(text: str, number: int) -> str:
    """Returns a source whose names are those of network `number`."""
    text = re.sub(r"\bstep(\d+)", rf"net{number}_step\1", text)
    text = text.replace("all_steps", f"net{number}_all_steps").replace("nnd_points_version", f"net{number}_points")
    text = text.replace("nnd_seal", f"net{number}_seal")
    return re.sub(r"\bnnd_(run|start|stop|compose)\(", rf"net{number}_\1(", text)


class Library:
    """Some planned networks of one set, compiled; `sanitize` watches every access, where gcc's runtime is here."""

    def __init__(
        self, chosen: Set, networks: Sequence[Planned], folder: Path, *, sanitize: bool = False, as_built: bool = False
    ) -> None:
        """Compiles in a folder of its own."""
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        fixed = "".join(one.sources[0] for one in networks)
        any_shape = "".join(one.sources[1] for one in networks if len(one.sources) > 1)
        files = {"fixed.c": chosen.prelude + _HOOK + fixed}
        if any_shape:
            files["any.c"] = chosen.prelude + any_shape
        for name, text in files.items():
            (folder / name).write_text(text)
        as_v3 = replace(ISAS[1], precision="fp32")
        level = [*(("-O3",) if as_built else _ONCE), "-w", *chosen.flags]
        off = ("-O3", "-Werror", *(("-fno-sanitize=all", "-g0", "-s", "-shared") if sanitize else ()))
        driver = str(HERE / "network_driver.c")
        if not sanitize:
            run_command(zig(as_v3, *level, *files, "-o", "kernels.so", without=off), folder)
            run_command(
                zig(as_v3, "-O1", driver, "-o", "driver", "-ldl", without=("-shared", "-O3", "-Werror")), folder
            )
            return
        watch = ("-fsanitize=address", "-fno-sanitize=undefined", "-g")
        for name in files:
            run_command(
                zig(as_v3, *level, *watch, "-c", name, "-o", f"{name}.o", without=(*off, "-Wl,--build-id=none")), folder
            )
        objects = [f"{name}.o" for name in files]
        run_command(["gcc", "-g", watch[0], "-shared", *objects, "-o", "kernels.so", "-pthread"], folder)
        run_command(["gcc", "-g", watch[0], driver, "-o", "driver", "-ldl"], folder)

    def remove(self) -> None:
        """Removes the folder."""
        shutil.rmtree(self.folder)

    def outputs(
        self, planned: Planned, inputs: Mapping[str, Array], workers: int, layout: int
    ) -> dict[str, Array] | str:
        """Returns the outputs by name, or what went wrong in one line."""
        (self.folder / "request").write_bytes(planned.request(inputs, workers, layout))
        environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
        command = ["./driver", "./kernels.so", "request", "result"]
        try:
            done = subprocess.run(
                command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return f"no end within {_SECONDS} s"
        if done.returncode:
            return f"the driver ended with {done.returncode}: {done.stderr.strip()[:2000]}"
        return planned.outputs_from((self.folder / "result").read_bytes(), inputs)


def failures_of(library: Library, planned: Planned) -> list[str]:
    """Returns what is wrong with a network: memory, numbers, or other bytes where nothing but places differ."""
    wrong: list[str] = []
    for inputs, wanted in planned.network.samples:
        shapes = {name: array.shape for name, array in inputs.items()}
        first: dict[str, Array] | None = None
        for said, workers in (("each at its end", 1), ("each at its beginning", 2), ("in the planned arena", 1)):
            found = library.outputs(planned, inputs, workers, LAYOUTS[said])
            if isinstance(found, str):
                wrong.append(f"{said}, {workers} workers, {shapes}: {found}")
                continue
            wrong += [
                f"{said}, {workers} workers, {shapes}: {one}" for one in _wrong_numbers(planned.network, found, wanted)
            ]
            if workers == 1 and first is not None and any(found[k].tobytes() != first[k].tobytes() for k in found):
                wrong.append(f"{said}, {shapes}: other bytes than in memory apart")
            first = found if workers == 1 and first is None else first
    return wrong


def _wrong_numbers(network: Network, found: Mapping[str, Array], wanted: Mapping[str, Array]) -> list[str]:
    wrong = []
    for name, want in wanted.items():
        have = found[name]
        if have.shape != want.shape:
            wrong.append(f"{name}: shape {have.shape} instead of {want.shape}")
            continue
        scale = max(1.0, float(np.abs(want).max(initial=0.0)))
        difference = float(np.abs(have - want).max(initial=0.0))
        if not difference <= network.tolerance * scale:
            wrong.append(f"{name}: {difference} apart, of {scale}")
    return wrong
