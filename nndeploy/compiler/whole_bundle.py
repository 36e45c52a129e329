# SPDX-License-Identifier: Apache-2.0
"""The bundle as a whole: written on trial, run as it will be run, compared with the original model, written for good.

Comes in: what is packed, and settled chains. Goes out: one file, in one step. Law: of the bundle that is written every
output on every sample was within its tolerance or limits, or the original gave nothing to compare with.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from nndeploy.bundle.contents import contents_of
from nndeploy.bundle.manifest import Limits
from nndeploy.bundle.place_reports import places_of
from nndeploy.bundle.reader import open_bundle
from nndeploy.bundle.report import CheckReport, Report, report_for_bundle
from nndeploy.bundle.writer import write_bundle
from nndeploy.checking.check import describe_failure, is_quantised
from nndeploy.checking.widened import has_short_floats
from nndeploy.compiler import compile_warnings
from nndeploy.compiler.accuracy_against_float32 import with_accuracy
from nndeploy.compiler.chains.built_chain import Settled, precision_of
from nndeploy.compiler.compilation import Compilation
from nndeploy.compiler.ground_truth import compared_with_original, limits_of_original
from nndeploy.compiler.pack import Packing, pack, report_of
from nndeploy.errors import BuildRefusedError, CheckError
from nndeploy.jobs.tasks import MeasureOptions
from nndeploy.jobs.temporary import temporary_folder
from nndeploy.values.types import Value


def write_candidate(compilation: Compilation, packing: Packing, settled: Settled, path: Path) -> None:
    """Writes the bundle of a settled chain to be measured once: nothing in it is compressed, which takes longest."""
    manifest, members, report = pack(packing, settled, compilation.findings(), compresses=False)
    write_bundle(path, manifest, members, report_for_bundle(report), packing.hashes)


def write_whole(
    compilation: Compilation, packing: Packing, settled: Settled, path: Path, checks: Sequence[CheckReport] = ()
) -> Report:
    """Writes the bundle of a settled chain and returns its report, which holds `checks` beside those of its parts."""
    manifest, members, report = pack(packing, settled, compilation.findings(checks))
    write_bundle(path, manifest, members, report_for_bundle(report), packing.hashes)
    return report


def check_and_write(compilation: Compilation, packing: Packing, settled: Settled) -> Report:
    """Checks the whole bundle, as it will be run, against the original model; then writes it for good.

    Returns the report, without the seconds of this stage.

    Raises:
        CheckError: it is too large, does not run, or gives other numbers; nothing is written.
    """
    out = compilation.out
    assert out is not None
    if not packing.original.outputs and compilation.options.max_size is None:
        return write_whole(compilation, packing, settled, out)
    with temporary_folder("check", compilation.workers.shared_folder) as folder:
        trial = folder / "trial.nnd"
        write_whole(compilation, packing, settled, trial)
        _check_size(compilation, packing, settled, trial)
        if not packing.original.outputs:
            return write_whole(compilation, packing, settled, out)
        got = _outputs(compilation, packing, trial, "cpu")
        packing = replace(packing, quantisation=with_accuracy(packing, got))
        checks = _checked(compilation, packing, settled, got, precision_of([settled]))
        if packing.chains and compilation.here.gpus:
            chains = [chain.settled for chain in packing.chains]
            got = _outputs(compilation, packing, trial, "auto")
            checks += _checked(compilation, packing, settled, got, precision_of([settled, *chains]))
    compilation.warnings += compile_warnings.of_weak_checks(checks)
    return write_whole(compilation, replace(packing, limits=_limits(packing, checks)), settled, out, checks)


def finished(compilation: Compilation, report: Report) -> Report:
    """Returns the report of the bundle that was written, with its path, its size and the seconds of each stage."""
    assert compilation.out is not None
    with open_bundle(compilation.out) as bundle:
        size, contents, places = bundle.size_bytes, contents_of(bundle.manifest), places_of(bundle.manifest)
    path, seconds = str(compilation.out), dict(compilation.seconds)
    return replace(report, bundle=path, bundle_bytes=size, contents=contents, places=places, seconds=seconds)


def report_so_far(
    compilation: Compilation, packing: Packing, settled: Settled, checks: Sequence[CheckReport] = ()
) -> Report:
    """Returns the report of a compile that a check or a gate ends: it holds what that is about."""
    report = report_of(packing, settled.plan, settled, compilation.findings(checks), packing.chains)
    return replace(report, seconds=dict(compilation.seconds))


def _check_size(compilation: Compilation, packing: Packing, settled: Settled, trial: Path) -> None:
    size, most = trial.stat().st_size, compilation.options.max_size
    if most is not None and size > most:
        error = CheckError(
            f"the bundle has {size:,} bytes, the limit is {most:,}",
            hint="--no-fallback and fewer targets make it smaller",
        )
        error.report = report_so_far(compilation, packing, settled)
        raise error


def _outputs(compilation: Compilation, packing: Packing, trial: Path, device: str) -> list[dict[str, Value]]:
    """Returns what a bundle gives on a device of this machine."""
    run = MeasureOptions(threads=1, custom_op_libraries=packing.options.custom_op_libraries, device=device)
    try:
        return compilation.workers.run_bundle(trial, packing.original.samples, run)
    except BuildRefusedError as err:
        raise CheckError(f"the bundle does not run: {err}") from err


def _checked(
    compilation: Compilation,
    packing: Packing,
    settled: Settled,
    got: Sequence[Mapping[str, Value]],
    precision: str,
) -> list[CheckReport]:
    """Compares what a bundle gives with the original model."""
    checks = compared_with_original(packing.setting, "whole", packing.loaded, got, packing.original, precision)
    wrong = next((check for check in checks if not check.ok), None)
    if wrong is not None:
        hint = "made-up inputs may mean nothing to the model: --samples gives real ones; see also --rtol and --atol"
        error = CheckError(
            f"the whole bundle is wrong: {describe_failure(wrong)}",
            hint=hint if packing.original.is_made_up else "see --rtol and --atol",
        )
        error.report = report_so_far(compilation, packing, settled, checks)
        raise error
    return checks


def _limits(packing: Packing, checks: Sequence[CheckReport]) -> tuple[Mapping[str, Limits], ...]:
    """Returns how far right engines differ on the samples, where they do: another box must judge by it too."""
    if not packing.setting.has_limits:
        return ()
    graph = packing.loaded.model.graph
    if all(check.rule == "tolerance" for check in checks) and not (is_quantised(graph) or has_short_floats(graph)):
        return ()
    limits = limits_of_original(packing.setting, packing.loaded, packing.original)
    return tuple(limits()) if limits is not None else ()
