# SPDX-License-Identifier: Apache-2.0
"""Every kernel of the list (tests/native_kernel_list.py): its time, and the rate of its multiply-adds or bytes.

    python tests/bench/bench_native_kernels.py [--precision fp32|bf16] [--isa x86-64-v3] [--threads N] [--runs N]

Each row's model is built as the product builds it, checked against ONNX's reference evaluator, and its steps are timed
one by one; medians. Rows are small: the cost of a kernel on shapes that fit the caches.
"""

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx_ir as ir
from nndeploy_native.build import build, machine_of
from nndeploy_native.isa import ISAS
from nndeploy_native.session import open_session
from nndeploy_native.steps.step import Machine
from onnx.reference import ReferenceEvaluator
from profile_native import Row, inputs_of, profile

from nndeploy.plugin.interface import BuildOptions, OpenOptions
from nndeploy.target.target import host_target

sys.path.append(str(Path(__file__).resolve().parents[1]))
from native_kernel_list import KERNELS, Kernel

TOLERANCE = {"fp32": 2e-6, "bf16": 2e-2}
"""Of the largest value."""


def main() -> None:
    """Prints a row a kernel."""
    parser = argparse.ArgumentParser(description="the time of every kernel of our own")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--isa", help="another instruction set than this machine's widest")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=200)
    options = parser.parse_args()
    machine = machine_of(host_target(), BuildOptions(precision=options.precision, threads=options.threads))
    if options.isa:
        machine = replace(machine, isa=next(isa for isa in ISAS if isa.name == options.isa))
    print(f"{machine.isa.name}, {options.threads} threads\n")
    print("| kernel | what | µs | GFLOP/s | error |\n| --- | --- | ---: | ---: | ---: |")
    for kernel in KERNELS:
        error = _error(kernel, machine)
        if not error <= TOLERANCE[options.precision]:
            sys.exit(f"{kernel.name}: error {error:.1e} of the largest value")
        row = _row(kernel, machine, options.threads, options.runs)
        rate = f"{row.multiply_adds / row.microseconds / 500:.0f}" if row.multiply_adds else ""
        print(f"| {kernel.name} | {row.what} | {row.microseconds:.1f} | {rate} | {error:.1e} |", flush=True)


def _row(kernel: Kernel, machine: Machine, threads: int, runs: int) -> Row:
    rows = profile(ir.from_proto(kernel.model()), machine, threads, runs)
    return max((row for row in rows if row.kernel == kernel.name), key=lambda row: row.microseconds)


def _error(kernel: Kernel, machine: Machine) -> float:
    """Returns the largest difference to ONNX's reference, of the largest value."""
    model = kernel.model()
    of_ir = ir.from_proto(model)
    with tempfile.TemporaryDirectory() as folder:
        artifact = build(of_ir, machine, {}, Path(folder))
    inputs = inputs_of(of_ir)
    session = open_session(
        {name: memoryview(data) for name, data in artifact.files.items()}, artifact.metadata, OpenOptions(threads=1)
    )
    (found,) = (np.asarray(value) for value in session.run(inputs).values())
    wanted = ReferenceEvaluator(model).run(None, dict(inputs))[0]
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


if __name__ == "__main__":
    main()
