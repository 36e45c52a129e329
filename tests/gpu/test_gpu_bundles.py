# SPDX-License-Identifier: Apache-2.0
"""Bundles that were built elsewhere (`--bundle`): every hash, their goldens on this GPU, the time of a call."""

from collections.abc import Callable
from pathlib import Path

import pytest
from gpu_backends import DEVICE, Contestant, medians_ms

from nndeploy.bundle.reader import open_bundle
from nndeploy.comparison.compare import compare_values, tolerance_for
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.program import load_bundle
from nndeploy.runtime.sample_inputs import sample_inputs


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    paths = metafunc.config.getoption("--bundle", default=None) or []
    metafunc.parametrize("path", paths, ids=[path.name for path in paths])


@pytest.mark.serial
def test_a_bundle_gives_its_goldens(path: Path, record_property: Callable[[str, object], None]) -> None:
    with open_bundle(path) as bundle, load_bundle(path, LoadOptions(device=DEVICE)) as program:
        bundle.verify()
        for golden in bundle.manifest.goldens:
            got, want = program.run(bundle.values(golden.inputs)), bundle.values(golden.outputs)
            for output in [output for output in program.outputs if output.name in want]:
                tolerance = tolerance_for(output.type, bundle.manifest.tolerances)
                found = compare_values(got[output.name], want[output.name], tolerance)
                assert found.ok, f"{output.name}: {found.note}, {found.max_abs}"
        inputs = sample_inputs(bundle.manifest)
        record_property("ms", f"{medians_ms({'': Contestant(lambda: program.run(inputs))}, 1.0)['']:.4g}")
        record_property("submodels", " ".join(choice.backend for choice in program.choices))
