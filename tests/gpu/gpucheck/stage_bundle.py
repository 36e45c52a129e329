# SPDX-License-Identifier: Apache-2.0
"""Stage 3: bundles that were built elsewhere, on a machine without this GPU: every hash, then their goldens, here.

This is what the project is for. The kernels in such a bundle may be of another Triton than this machine's.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gpucheck.options import Options
from gpucheck.rows import NOT_RUN, OK, WRONG, Row
from gpucheck.tiers import DEVICE
from gpucheck.timing import Contestant, medians_ms
from nndeploy.bundle.reader import open_bundle
from nndeploy.comparison.compare import compare_values, tolerance_for
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.program import load_bundle
from nndeploy.runtime.sample_inputs import sample_inputs

STAGE = "bundle"
SECONDS = 1.0


def items(options: Options) -> list[str]:
    """Returns the files."""
    return list(options.bundles)


def run(item: str, options: Options) -> Iterator[Row]:
    """Yields what one bundle gives on the GPU."""
    name = Path(item).name
    with open_bundle(Path(item)) as bundle, load_bundle(item, LoadOptions(device=DEVICE)) as program:
        bundle.verify()
        manifest = bundle.manifest
        counts = Counter(choice.backend for choice in program.choices)
        facts: dict[str, Any] = {"submodels": ", ".join(f"{count} {backend}" for backend, count in counts.items())}
        if program.warnings:
            facts["warnings"] = "; ".join(program.warnings)
        inputs: Mapping[str, Any] = sample_inputs(manifest)
        worst, wrong = 0.0, ""
        for golden in manifest.goldens:
            inputs = bundle.values(golden.inputs)
            got, want = program.run(inputs), bundle.values(golden.outputs)
            for output in [output for output in program.outputs if output.name in want]:
                tolerance = tolerance_for(output.type, manifest.tolerances)
                found = compare_values(got[output.name], want[output.name], tolerance)
                worst = max(worst, found.max_abs or 0.0)
                if not found.ok:
                    wrong = f"{output.name}: {found.note or f'max abs {found.max_abs:.3g}'}"
        ms = medians_ms({"": Contestant(lambda: program.run(inputs))}, SECONDS)[""]
    if wrong:
        yield Row(STAGE, name, "bundle", WRONG, wrong, max_abs=worst, ms=ms, facts=facts)
    elif not manifest.goldens:
        yield Row(STAGE, name, "bundle", NOT_RUN, "it holds no goldens: run, not compared", ms=ms, facts=facts)
    else:
        yield Row(STAGE, name, "bundle", OK, max_abs=worst, ms=ms, facts=facts)
