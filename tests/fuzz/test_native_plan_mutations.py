# SPDX-License-Identifier: Apache-2.0
"""Bundles of `native` whose plan, weights, document, metadata or types say something else, hashes made right.

Each is refused by one line, or gives the right numbers, or of a plan or weights that were changed the right shapes.
In a child process, for what is believed wrongly ends it.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from nndeploy_native.probe import probe

import nndeploy
from nndeploy.target.target import host_target

MUTANTS = Path(__file__).with_name("fuzz_native_plans.py")
COUNT = 150
PAIR = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[{n},24,8,8] x, float[{n},40,8,8] z) => (float[{n},40,8,8] y, float[{n},40,1,1] m)
    {{ d = Conv<group=24, pads=[1,1,1,1]>(x, w) r = Relu(d) p = Conv(r, v) y = Add(p, z) m = GlobalAveragePool(y) }}"""

CHOICE = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[{n},24,8,8] x, float[{n},40,8,8] z) => (float[{n},40,8,8] y, float[{n},40,1,1] m)
    <float k = {{-9}}> {{ l = ReduceMax<keepdims=0>(x) c = Greater(l, k) o = If(c) <
        then_branch = t () => (float[{n},40,8,8] a) {{ d = Conv<group=24, pads=[1,1,1,1]>(x, w) r = Relu(d)
            p = Conv(r, v) a = Add(p, z) }}, else_branch = e () => (float[{n},40,8,8] b) {{ b = Conv(x, v) }}>
    y = Relu(o) m = GlobalAveragePool(y) }}"""


@pytest.fixture(scope="module", params=["fixed", "of any size", "an If"])
def bundle(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a bundle of one submodel for `native`."""
    if not (found := probe(host_target())).can_run:
        pytest.skip(found.reason)
    folder, is_fixed = tmp_path_factory.mktemp("native"), request.param == "fixed"
    text = CHOICE if request.param == "an If" else PAIR
    model = onnx.parser.parse_model(text.format(n="1" if is_fixed else "n"))
    numbers = np.random.default_rng(1)
    for name, shape in (("w", (24, 1, 3, 3)), ("v", (40, 24, 1, 1))):
        array = numbers.standard_normal(shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    onnx.save(model, folder / "m.onnx")
    ranges = {} if is_fixed else {"shapes": {"x": ("1..16", 24, 8, 8), "z": ("1..16", 40, 8, 8)}}
    nndeploy.compile_model(folder / "m.onnx", folder / "m.nnd", nndeploy.CompileOptions(backends=("native",), **ranges))
    return folder / "m.nnd"


@pytest.mark.slow
def test_mutants_with_right_hashes_are_refused_or_right(bundle: Path) -> None:
    command = [sys.executable, str(MUTANTS), str(bundle), "0", str(COUNT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    lines = done.stdout.splitlines()
    wrong = [line for line in lines if line.startswith("WRONG")] or lines[-1:]
    assert done.returncode == 0, f"ended with {done.returncode} at {wrong[:5]}: {done.stderr[-1000:]}"
