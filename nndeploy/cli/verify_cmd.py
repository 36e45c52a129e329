# SPDX-License-Identifier: Apache-2.0
"""`nndeploy verify`: every byte of a bundle against its hashes, then its goldens re-run on this machine."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click

from nndeploy.bundle.manifest import Manifest, Tolerance
from nndeploy.bundle.reader import Bundle, open_bundle
from nndeploy.cli.console import print_json, print_line, print_table
from nndeploy.cli.load_options import BUNDLE, load, load_options
from nndeploy.cli.run_view import choice_to_json
from nndeploy.comparison.compare import Comparison, tolerance_for
from nndeploy.comparison.judge import judge
from nndeploy.errors import CheckError, UsageError
from nndeploy.runtime.code_policy import check_code_flags, files_in
from nndeploy.runtime.program import Program

EXAMPLES = """\b
Examples:
  nndeploy verify model.nnd
  nndeploy verify model.nnd --no-run            hashes and structure alone, no backend needed
  nndeploy verify model.nnd --rtol 1e-3 --json
"""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One output of one golden against the reference."""

    golden: int
    origin: str
    output: str
    tolerance: Tolerance
    comparison: Comparison


@click.command("verify", epilog=EXAMPLES)
@BUNDLE
@click.option("--run/--no-run", default=True, help="Re-run the goldens on this machine.")
@click.option("--rtol", type=click.FloatRange(min=0), help="Relative tolerance in place of the bundle's, for floats.")
@click.option("--atol", type=click.FloatRange(min=0), help="Absolute tolerance in place of the bundle's, for floats.")
@load_options
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON on standard output.")
def verify(bundle: Path, run: bool, rtol: float | None, atol: float | None, as_json: bool, **options: Any) -> None:
    """Check a BUNDLE: every byte, then its results on this machine.

    A damaged bundle ends with exit code 65, one that hides code with 77, a result outside the tolerance with 1.
    """
    if not run and (rtol, atol) != (None, None):
        raise UsageError("--rtol and --atol have no meaning with --no-run")
    with open_bundle(bundle) as opened:
        opened.verify()
        check_code_flags(opened.manifest, files_in(opened))
        members, goldens = len(opened.manifest.members), opened.manifest.goldens
        report = {"bundle": str(bundle), "size_bytes": opened.size_bytes, "members": members, "choices": []}
        verdicts: list[Verdict] = []
        if run and goldens:
            with load(bundle, options) as program:
                verdicts = list(
                    _verdicts(program, opened, _tolerances(opened.manifest, rtol, atol), rtol is None and atol is None)
                )
                report["choices"] = [choice_to_json(choice) for choice in program.choices]
    failed = [verdict for verdict in verdicts if not verdict.comparison.ok]
    if as_json:
        print_json(report | {"ran": run, "outputs": [_to_json(verdict) for verdict in verdicts]})
    else:
        print_line(f"{bundle}: {members} members, every byte as the manifest says")
        _print_verdicts(verdicts)
    if run and not verdicts:
        raise CheckError(
            "no result was compared: the bundle holds no goldens",
            where=str(bundle),
            hint="--no-run checks the bytes alone; compile --samples keeps inputs with their results",
        )
    if failed:
        raise CheckError(f"{len(failed)} of {len(verdicts)} outputs differ from the reference", where=str(bundle))


def _tolerances(manifest: Manifest, rtol: float | None, atol: float | None) -> dict[str, Tolerance]:
    """Returns the bundle's tolerances, with those of the command line for every floating type."""
    floats = [dtype for dtype in manifest.tolerances if "float" in dtype or "complex" in dtype]
    changes = {name: value for name, value in (("rtol", rtol), ("atol", atol)) if value is not None}
    return {**manifest.tolerances, **{dtype: replace(manifest.tolerances[dtype], **changes) for dtype in floats}}


def _verdicts(
    program: Program, bundle: Bundle, tolerances: Mapping[str, Tolerance], by_limits: bool
) -> Iterator[Verdict]:
    for i, golden in enumerate(bundle.manifest.goldens):
        want = bundle.values(golden.outputs)
        got = program.run(bundle.values(golden.inputs))
        types = {output.name: output.type for output in program.outputs if output.name in want}
        found = judge(got, want, types, tolerances, lambda golden=golden: golden.limits if by_limits else {})  # type: ignore[misc]
        for output in program.outputs:
            if output.name in want:
                yield Verdict(i, golden.origin, output.name, tolerance_for(output.type, tolerances), found[output.name])


def _to_json(verdict: Verdict) -> dict[str, Any]:
    return {
        "golden": verdict.golden,
        "origin": verdict.origin,
        "output": verdict.output,
        "rtol": verdict.tolerance.rtol,
        "atol": verdict.tolerance.atol,
        **asdict(verdict.comparison),
    }


def _print_verdicts(verdicts: list[Verdict]) -> None:
    if not verdicts:
        return
    columns = ("golden", "output", "", "max abs", "max rel", "cosine", "rtol", "atol", "note")
    rows = [
        (
            f"{verdict.golden} ({verdict.origin})",
            verdict.output,
            "ok" if verdict.comparison.ok else "FAILED",
            _figure(verdict.comparison.max_abs),
            _figure(verdict.comparison.max_rel),
            "-" if verdict.comparison.cosine is None else f"{verdict.comparison.cosine:.8f}",
            f"{verdict.tolerance.rtol:g}",
            f"{verdict.tolerance.atol:g}",
            verdict.comparison.note,
        )
        for verdict in verdicts
    ]
    print_table("goldens, re-run on this machine", columns, rows, right=columns[3:8])


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
