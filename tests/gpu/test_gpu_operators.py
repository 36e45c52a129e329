# SPDX-License-Identifier: Apache-2.0
"""Small models of one or a few operators, each backend alone, against ONNX Runtime on the CPU.

Every model runs on three inputs, the first of them twice: a session keeps memory and a graph between calls.
"""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import gpu_operator_models as models
import pytest
from gpu_backends import (
    TIERS,
    RefusedError,
    built,
    check_alike,
    on_host,
    opened,
    ort_outputs,
    ort_session,
    random_inputs,
)

from nndeploy.target.target import host_target

SEEDS = (0, 1, 2, 0)


@pytest.mark.parametrize("tier", TIERS, indirect=True)
@pytest.mark.parametrize("name", models.names())
def test_a_model_is_right_or_refused(name: str, tier: str, tmp_path: Path) -> None:
    proto = models.model(name)
    reference = ort_session(proto, threads=1)
    try:
        artifact = built(tier, proto, replace(host_target(), is_host=False), tmp_path)  # tiles are not measured
    except RefusedError as err:
        pytest.skip(str(err))
    quantised = name.rpartition("/")[0] in models.QUANTISED
    with closing(opened(tier, artifact)) as session:
        for seed in SEEDS:
            inputs = random_inputs(reference, seed)
            check_alike(on_host(session.run(inputs)), ort_outputs(reference, inputs), quantised=quantised)
