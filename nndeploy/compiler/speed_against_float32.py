# SPDX-License-Identifier: Apache-2.0
"""What quantisation brought: a call of the bundle beside one of the bundle that the float32 model would have become.

Comes in: the float32 model as it was loaded, and the quantised one, settled. Goes out: milliseconds of both, in turns,
in the report. Law: nothing is measured where placements are not, so that the same input gives the same bytes there.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from nndeploy.bundle.report import QuantisationReport
from nndeploy.compiler.chains.built_chain import Settled
from nndeploy.compiler.compilation import Compilation
from nndeploy.compiler.options import CompileOptions
from nndeploy.compiler.pack import Packing
from nndeploy.compiler.whole_bundle import write_candidate
from nndeploy.errors import BuildRefusedError, NndeployError
from nndeploy.jobs.tasks import MeasureOptions
from nndeploy.jobs.temporary import temporary_folder

SECONDS = 0.5
"""Time that calls of each bundle take in all; where one is long, a few calls."""

CompileFloat = Callable[[Compilation], object]


def with_speeds(
    compilation: Compilation, packing: Packing, settled: Settled, compile_float: CompileFloat
) -> QuantisationReport | None:
    """Returns the report of the quantisation, with milliseconds of both bundles where placements are measured.

    `compile_float` compiles the float32 model as another compilation asks.
    """
    report, options = packing.quantisation, compilation.options
    is_measured = options.objective != "priority" and options.decisions is None
    if report is None or not is_measured or not packing.original.samples:
        return report
    try:
        with temporary_folder("float32", compilation.workers.shared_folder) as folder:
            float_ms, quantised_ms = _milliseconds(compilation, packing, settled, compile_float, folder)
    except (NndeployError, BuildRefusedError) as err:
        compilation.warnings.append(f"the speed of the float32 model was not measured: {err}")
        return report
    if quantised_ms > float_ms:
        compilation.warnings.append(
            f"the quantised model is slower here than the float32 one: {quantised_ms:.3f} ms, not {float_ms:.3f} ms"
        )
    return replace(report, float_ms=float_ms, quantised_ms=quantised_ms)


def _milliseconds(
    compilation: Compilation, packing: Packing, settled: Settled, compile_float: CompileFloat, folder: Path
) -> tuple[float, float]:
    options = compilation.options
    paths = [folder / "float32.nnd", folder / "quantised.nnd"]
    compile_float(
        Compilation(
            options=_for_speed_alone(options),
            workers=compilation.workers,
            events=lambda stage, detail: compilation.events("float32", ": ".join(filter(None, (stage, detail)))),
            here=compilation.host,
            out=paths[0],
        )
    )
    write_candidate(compilation, packing, settled, paths[1])
    compilation.events("float32", "both in turns")
    measure = MeasureOptions(
        seconds=SECONDS, threads=options.threads or 1, custom_op_libraries=options.custom_op_libraries
    )
    times = compilation.workers.measure(paths, packing.original.samples[:1], measure).ms
    float_ms, quantised_ms = (float(f"{of[0]:.4g}") for of in times)
    return float_ms, quantised_ms


def _for_speed_alone(options: CompileOptions) -> CompileOptions:
    """Returns the options that have a part in how fast the portable chain is here; one sample is enough."""
    return replace(
        options, quantise=None, calibration=None, quantise_tolerance=None, samples=(options.samples or ())[:1],
        keep_fallback=False, targets=(), pace=False, pipeline=None, image_input=None, require={}, max_fallback=None,
        strict_targets=False, max_size=None, num_goldens=0,
    )  # fmt: skip
