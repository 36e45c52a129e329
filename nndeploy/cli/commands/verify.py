# SPDX-License-Identifier: Apache-2.0
"""`nndeploy verify`: every byte of a bundle against its hashes, then its goldens re-run on this machine."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from nndeploy.ci_reports.command_report import Checked
from nndeploy.cli.commands.loading import BUNDLE, load
from nndeploy.cli.console import print_json, print_line, print_table
from nndeploy.cli.options.ci_options import CI_SECTION, ci_options, ci_report
from nndeploy.cli.options.help_sections import SectionedCommand
from nndeploy.cli.options.option_fields import options_given, options_of, sections_of
from nndeploy.cli.options.quiet_option import QUIET
from nndeploy.cli.options.value_types import Number
from nndeploy.cli.views.choices_json import choice_to_json
from nndeploy.errors import CheckError, UsageError
from nndeploy.runtime.load_options import CautiousLoadOptions
from nndeploy.runtime.verify_bundle import OutputVerdict, Verification
from nndeploy.runtime.verify_bundle import verify as verify_bundle
from nndeploy.trust.signatures import SignatureVerdict, signed_text
from nndeploy.values.amounts import counted, size_text

EXAMPLES = """\b
Examples:
  nndeploy verify model.nnd
  nndeploy verify model.nnd --no-run            only hashes and structure, no backend needed
  nndeploy verify model.nnd --signatures        also require a trusted signature
  nndeploy verify model.nnd --rtol 1e-3 --json
"""


SECTIONS = sections_of({"Checks": ("run", "signatures", "rtol", "atol")}, CautiousLoadOptions, CI_SECTION)


@click.command("verify", cls=SectionedCommand, sections=SECTIONS, epilog=EXAMPLES)
@BUNDLE
@click.option(
    "--run/--no-run", default=True, help="Re-run the goldens (stored inputs with reference outputs) on this machine."
)
@click.option("--rtol", type=Number(min=0), help="Relative tolerance for floats, instead of the bundle's own.")
@click.option("--atol", type=Number(min=0), help="Absolute tolerance for floats, instead of the bundle's own.")
@click.option("--signatures", is_flag=True, help="Fail unless a trusted key has signed the bundle.")
@options_of(CautiousLoadOptions)
@ci_options
@QUIET
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON on standard output.")
def verify(
    bundle: Path, run: bool, rtol: float | None, atol: float | None, signatures: bool, as_json: bool, **options: Any
) -> None:
    """Verify a BUNDLE: its integrity, and its results here.

    Exit codes: 65 if the bundle is damaged; 77 if it hides code, or if no trusted key has signed its code; 1 if a
    result is out of tolerance.
    """
    if not run and (rtol, atol) != (None, None):
        raise UsageError("--rtol and --atol cannot be used with --no-run")
    with ci_report("verify", bundle, options) as report:
        how = options_given(CautiousLoadOptions, options)
        found = verify_bundle(
            bundle, run=run, rtol=rtol, atol=atol, signatures=signatures, load=lambda path: load(path, how)
        )
        report.checks += map(_checked, found.outputs)
        report.figures += [("members", f"{found.num_members:,}"), ("size", size_text(found.size_bytes))]
        if as_json:
            print_json(_found_to_json(bundle, found, ran=run))
        else:
            _print(bundle, found, ran=run)
        _raise_if_failed(bundle, found, ran=run)


def _found_to_json(bundle: Path, found: Verification, *, ran: bool) -> dict[str, Any]:
    head = {"bundle": str(bundle), "size_bytes": found.size_bytes, "members": found.num_members}
    choices = [choice_to_json(choice) for choice in found.choices]
    signed = {} if found.signed is None else {"signed": _signed_to_json(found.signed)}
    return {**head, "choices": choices, "ran": ran, "outputs": list(map(_to_json, found.outputs)), **signed}


def _print(bundle: Path, found: Verification, *, ran: bool) -> None:
    print_line(f"{bundle}: {found.num_members} members, all as in the manifest")
    if found.signed is not None:
        print_line(f"{bundle}: {signed_text(found.signed.release, map(str, found.signed.signatures))}")
    _print_verdicts(found.outputs)
    print_line(_verdict_line(found, ran=ran))


def _raise_if_failed(bundle: Path, found: Verification, *, ran: bool) -> None:
    if ran and not found.outputs:
        raise CheckError(
            "no result was compared: the bundle contains no goldens",
            where=str(bundle),
            hint="--no-run checks the bytes alone; compile --samples keeps inputs with their results",
        )
    if found.failed:
        raise CheckError(
            f"{len(found.failed)} of {len(found.outputs)} outputs differ from the reference", where=str(bundle)
        )


def _checked(verdict: OutputVerdict) -> Checked:
    one = verdict.comparison
    found = f"max abs {_figure(one.max_abs)}, max rel {_figure(one.max_rel)}" + (f"; {one.note}" if one.note else "")
    return Checked(f"golden {verdict.golden} ({verdict.origin}): {verdict.output}", one.ok, found)


def _verdict_line(found: Verification, *, ran: bool) -> str:
    """Returns the verdict in a line, which begins with PASSED or FAILED."""
    if not ran:
        return "PASSED, all members as in the manifest; no output was compared"
    if not found.outputs:
        return "FAILED, no output was compared"
    good, total = len(found.outputs) - len(found.failed), len(found.outputs)
    return f"{'FAILED' if found.failed else 'PASSED'}, {good} of {counted(total, 'output')} within tolerance"


def _signed_to_json(signed: SignatureVerdict) -> dict[str, Any]:
    signatures = [asdict(one) for one in signed.signatures]
    return {"scope": signed.scope, "release": signed.release, "signatures": signatures}


def _to_json(verdict: OutputVerdict) -> dict[str, Any]:
    return {
        "golden": verdict.golden,
        "origin": verdict.origin,
        "output": verdict.output,
        "rtol": verdict.tolerance.rtol,
        "atol": verdict.tolerance.atol,
        **asdict(verdict.comparison),
    }


def _print_verdicts(verdicts: Sequence[OutputVerdict]) -> None:
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
