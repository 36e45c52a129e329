# SPDX-License-Identifier: Apache-2.0
"""The list of kernels is whole, and each of its rows builds, holds its kernel, and gives ONNX's numbers."""

import json
import re
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from native_kernel_list import KERNELS, Kernel
from native_models import built, needs_zig, run, runnable_isas
from nndeploy_native.isa import Isa
from nndeploy_native.library import HEADERS
from nndeploy_native.plan import PLAN_FILE
from nndeploy_native.steps.step import Machine
from onnx.reference import ReferenceEvaluator

FUNCTION = re.compile(r"(?:NND_INLINE void |NND_GATHER\(|NND_STRIDED_COPY\()nnd_([a-z_]+)_step[(,]")
NOT_KERNELS = {"run", "pool"}
"""nnd_run_step and nnd_pool_step run them."""
TOLERANCE = {"fp32": 2e-6, "bf16": 2e-2}
"""Of the largest value."""


def test_the_list_is_that_of_the_headers() -> None:
    found = {(name, path.name) for path in HEADERS.glob("*.h") for name in FUNCTION.findall(path.read_text())}
    assert {row for row in found if row[0] not in NOT_KERNELS} == {(one.name, one.header) for one in KERNELS}


def test_the_page_of_names_has_every_kernel() -> None:
    page = (HEADERS / "README.md").read_text()
    missing = [one.name for one in KERNELS if f"`{one.name.removesuffix('_blocked')}" not in page]
    assert not missing


@pytest.mark.parametrize("isa", [*runnable_isas(), *runnable_isas("bf16")], ids=lambda isa: isa.name)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_row_holds_its_kernel_and_gives_the_numbers(kernel: Kernel, isa: Isa, tmp_path: Path) -> None:
    needs_zig()
    model = kernel.model()
    artifact = built(ir.from_proto(model), tmp_path, Machine(isa))
    assert kernel.name in [step["kernel"] for step in json.loads(artifact.files[PLAN_FILE])["steps"]]
    random, inputs = np.random.default_rng(1), {}
    for value in model.graph.input:
        shape = [one.dim_value for one in value.type.tensor_type.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        is_whole = np.issubdtype(dtype, np.integer)
        inputs[value.name] = (random.integers(0, 70, shape) if is_whole else random.standard_normal(shape)).astype(
            dtype
        )
    wanted = ReferenceEvaluator(model).run(None, inputs)[0]
    (found,) = run(artifact, inputs).values()
    assert np.abs(found - wanted).max() <= TOLERANCE[isa.precision] * np.abs(wanted).max()
