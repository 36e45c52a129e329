# SPDX-License-Identifier: Apache-2.0
"""What fusing a depthwise and a pointwise convolution gains, and what the capacity of the buffer between them does.

    python tests/bench/bench_native_window.py [--blocks C->O@size/stride,...] [--capacities KiB,...] [--seconds S]
        [--simulate l2,l3] [--l2 BYTES] [--l3 BYTES] [--svg docs/figures/native-window.svg] [--json out.json]

Each block is built fused for every capacity and unfused, by the backend `native` for this machine; all variants are run
in turn in this process, on one thread, through the product's session. Times are those of the block's own kernels
(native_block.py): layout conversions at the edges are in neither. Outputs are compared with ONNX Runtime's (1e-5 of the
largest value), and fused with unfused. "fused / unfused" is the median over rounds of the ratio of times.

Bytes: "counted" is what a variant must read and write by its shapes: input rows and columns again for each window that
touches them, the first result twice where it is not fused, partial sums, weights once. "past L2" and "DRAM" are
simulated by valgrind with a last cache of the size of L2 and of L3 (native_traffic.py), built for x86-64-v3. Where the
processor's counters can be read, its cache misses stand beside them.
"""

import argparse
import dataclasses
import json
import os
import re
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import hardware_counter
import native_traffic
import onnxruntime
from figures import figure, header
from interleaved import Array, largest_error
from line_chart import Line, Panel, svg
from native_block import KERNEL, Block, TimedBlock, built, computing_steps, machine_for, opened
from native_engines import machine_line, machine_name

from nndeploy.target.target import X86_64_LEVELS, Target, host_target

BLOCKS = "512->512@14/1,128->128@56/1,64->64@320/1,32->64@640/1,96->24@112/2x8"
"""The first two fit the caches of most machines."""
CAPACITIES = tuple(8 << n for n in range(10))
BOUND = 1e-5
ROUNDS_AT_LEAST = 5
UNFUSED = 0
"""Stands for a capacity where nothing is fused."""
LEVELS = {"l2": "past L2", "l3": "DRAM"}
PICTURE = Path(__file__).resolve().parents[2] / "docs" / "figures" / "native-window.svg"


@dataclass
class Row:
    """One variant of a block; bytes are None where they were not simulated, misses where they were not counted."""

    block: str
    capacity: int
    window: str
    microseconds: float
    ratio: float
    counted_bytes: int
    past_l2_bytes: int | None
    dram_bytes: int | None
    misses: int | None
    error: float


def main() -> None:
    """Prints a table, and writes the picture."""
    options = _options()
    print(machine_line())
    counter = _counter()
    levels = _levels(options)
    print("\n| block | buffer | window | us | fused / unfused | counted MB | past L2 MB | DRAM MB | misses | error |")
    print("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    rows: list[Row] = []
    for block in _blocks(options.blocks):
        for row in _measured(block, options, levels, counter):
            print(_line(row), flush=True)
            rows.append(row)
        if options.json:
            options.json.write_text(json.dumps([dataclasses.asdict(row) for row in rows], indent=1))
    options.svg.write_text(header(figure(PICTURE.name), machine_name()) + _picture(rows))


def _options() -> argparse.Namespace:
    caches = dict(host_target().caches)
    parser = argparse.ArgumentParser(
        description="fused against unfused, over the capacity of the buffer",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--blocks", default=BLOCKS, help="channels->outputs@size/stride[xbatch]")
    parser.add_argument("--capacities", default=",".join(map(str, CAPACITIES)), help="of the buffer, in KiB")
    parser.add_argument("--seconds", type=float, default=4.0, help="of timing for each block")
    parser.add_argument("--simulate", default="l2,l3", help='of l2, l3; "" for none')
    parser.add_argument("--l1", type=int, default=caches.get("l1", 32 << 10), help="simulated bytes")
    parser.add_argument("--l2", type=int, default=caches.get("l2", 1 << 20), help="simulated bytes")
    parser.add_argument("--l3", type=int, default=caches.get("l3", 32 << 20), help="simulated bytes")
    parser.add_argument("--svg", type=Path, default=PICTURE, help="where the picture is written")
    parser.add_argument("--json", type=Path, help="where the rows are written")
    return parser.parse_args()


def _blocks(text: str) -> list[Block]:
    return [_block(one) for one in text.split(",")]


def _block(text: str) -> Block:
    found = re.fullmatch(r"(\d+)->(\d+)@(\d+)/(\d+)(?: ?x(\d+))?", text.strip())
    if not found:
        sys.exit(f"not a block: {text!r}; for example 96->24@112/2x8")
    channels, outputs, size, stride, batch = (int(number or 1) for number in found.groups())
    return Block(channels, outputs, size, stride, batch)


def _counter() -> int | None:
    """Returns the descriptor of the processor's counter of cache misses, or prints why there is none."""
    try:
        return hardware_counter.opened_counter()
    except OSError as err:
        print(f"\nThe processor's counter of cache misses cannot be read here: {err}")
        return None


def _levels(options: argparse.Namespace) -> dict[str, int]:
    """Returns the bytes of each last cache to simulate; none, and why, where valgrind is not here."""
    asked = {level: getattr(options, level) for level in LEVELS if level in options.simulate.split(",")}
    if asked and (reason := native_traffic.unavailable()):
        print(f"\nNothing is simulated: {reason}")
        return {}
    return {"l1": options.l1, **asked}


def _measured(block: Block, options: argparse.Namespace, levels: dict[str, int], counter: int | None) -> list[Row]:
    capacities = [UNFUSED, *(int(text) << 10 for text in options.capacities.split(","))]
    target, inputs = host_target(), block.inputs()
    variants = {one: opened(built(block, _machine(target, one))) for one in capacities}
    errors = _checked(block, variants, inputs)
    rounds = _timed(variants, inputs, options.seconds)
    moved = {level: _simulated(block, target, capacities, levels["l1"], size)
             for level, size in levels.items() if level in LEVELS}  # fmt: skip
    return [
        Row(
            str(block),
            one,
            variant.window,
            1e6 * statistics.median(times[one] for times in rounds),
            statistics.median(times[one] / times[UNFUSED] for times in rounds),
            counted_bytes(block, variant),
            moved["l2"][one] if "l2" in moved else None,
            moved["l3"][one] if "l3" in moved else None,
            None if counter is None else variant.counted(inputs, counter),
            errors[one],
        )
        for one, variant in variants.items()
    ]


def _machine(target: Target, capacity: int) -> Any:
    return machine_for(target, capacity, fuses=capacity != UNFUSED)


def _checked(block: Block, variants: dict[int, TimedBlock], inputs: dict[str, Array]) -> dict[int, float]:
    """Returns each variant's error; ends the command where one is too large, or fused and unfused differ as much."""
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads, settings.log_severity_level = 1, 4
    model = block.model().SerializeToString()
    want = onnxruntime.InferenceSession(model, settings, providers=["CPUExecutionProvider"]).run(None, inputs)
    unfused = variants[UNFUSED].run(inputs)
    errors = {}
    for capacity, variant in variants.items():
        got = variant.run(inputs)
        errors[capacity] = max(largest_error([got], want), largest_error([got], [unfused]))
        if not errors[capacity] <= BOUND:
            sys.exit(f"{block}, {_capacity_text(capacity)}: error {errors[capacity]:.1e} of the largest value")
    return errors


def _timed(variants: dict[int, TimedBlock], inputs: dict[str, Array], seconds: float) -> list[dict[int, float]]:
    """Returns the seconds of each variant's kernels, round by round; every variant runs once a round."""
    rounds: list[dict[int, float]] = []
    taken = 0.0
    while taken < seconds or len(rounds) < ROUNDS_AT_LEAST:
        rounds.append({one: variant.seconds(inputs) for one, variant in variants.items()})
        taken += sum(rounds[-1].values())
    return rounds


def _simulated(block: Block, target: Target, capacities: list[int], l1: int, last: int) -> dict[int, int]:
    """Returns the bytes past a last cache of `last` bytes, for each capacity; equal libraries are simulated once."""
    features = tuple(sorted((*X86_64_LEVELS["x86-64-v2"], *X86_64_LEVELS["x86-64-v3"])))
    old = dataclasses.replace(target, cpu_features=features)
    keys, different = {}, {}
    for capacity in capacities:
        machine = _machine(old, capacity)
        machine = dataclasses.replace(machine, isa=dataclasses.replace(machine.isa, zig_cpu="x86_64_v3-fma"))
        artifact = built(block, machine, native_traffic.HEAD)
        keys[capacity] = str(hash(artifact.files["kernels.so"]))
        different[keys[capacity]] = (artifact, computing_steps(artifact)[0])
    found = native_traffic.simulated(different, block.inputs(), l1, last)
    return {capacity: found[key] for capacity, key in keys.items()}


def counted_bytes(block: Block, variant: TimedBlock) -> int:
    """Returns what a variant reads and writes of tensors and weights, by its shapes; padded channels included."""
    lanes = machine_for(host_target(), 0).isa.lanes
    channels, outputs = (-(-number // lanes) * lanes for number in (block.channels, block.outputs))
    weights = channels * (KERNEL * KERNEL + 1) + outputs * (channels + 1)
    second = outputs * block.out_size**2
    if not variant.window:
        first = channels * block.out_size**2
        return 4 * (weights + block.batch * (channels * block.size**2 + 2 * first + second))
    rows, columns, part = map(int, variant.window.split("x"))
    read = _touched(block, rows) * _touched(block, columns) * channels
    parts = -(-channels // part)
    return 4 * (weights + block.batch * (read + (2 * parts - 1) * second))


def _touched(block: Block, step: int) -> int:
    """Returns how many rows (or columns) of the input all windows of `step` of the output read, halos each time."""
    total = 0
    for begin in range(0, block.out_size, step):
        last = min(begin + step, block.out_size) - 1
        from_, to = begin * block.stride - KERNEL // 2, last * block.stride + KERNEL // 2
        total += min(to, block.size - 1) - max(from_, 0) + 1
    return total


def _capacity_text(capacity: int) -> str:
    return "unfused" if capacity == UNFUSED else f"{capacity >> 10} KiB"


def _line(row: Row) -> str:
    simulated = (f"{one / 1e6:.2f}" if one is not None else "" for one in (row.past_l2_bytes, row.dram_bytes))
    misses = "" if row.misses is None else f"{row.misses:,}"
    return (
        f"| {row.block} | {_capacity_text(row.capacity)} | {row.window} | {row.microseconds:.1f} | {row.ratio:.2f} "
        f"| {row.counted_bytes / 1e6:.2f} | {' | '.join(simulated)} | {misses} | {row.error:.1e} |"
    )


def _picture(rows: list[Row]) -> str:
    """Returns the picture of the times, and of the bytes to and from DRAM, or as counted where none was simulated."""
    is_simulated = all(row.dram_bytes is not None for row in rows)

    def megabytes(row: Row) -> float:
        return (row.dram_bytes or 0 if is_simulated else row.counted_bytes) / 1e6

    names = list(dict.fromkeys(row.block for row in rows))
    fused = {name: [row for row in rows if row.block == name and row.capacity != UNFUSED] for name in names}
    unfused = {row.block: row for row in rows if row.capacity == UNFUSED}
    times = [Line(name, [(row.capacity, row.ratio) for row in fused[name]]) for name in names]
    moved = [Line(name, [(row.capacity, megabytes(row)) for row in fused[name]], megabytes(unfused[name]))
             for name in names]  # fmt: skip
    what = "Bytes to and from DRAM, simulated" if is_simulated else "Bytes read and written, counted"
    label = "capacity of the buffer (KiB)"
    return svg(
        [
            Panel("Time, fused / unfused, one thread", label, "ratio of times (less is better)", times, mark=1.0),
            Panel(what, label, "MB a run (dashed: unfused)", moved),
        ],
        "depthwise 3 x 3 + pointwise: channels->outputs@size/stride xbatch; made by tests/bench/bench_native_window.py",
    )


if __name__ == "__main__":
    main()
