# SPDX-License-Identifier: Apache-2.0
"""`nndeploy inspect`: what a bundle holds, who runs what, and why; nothing is run. A model: `inspect_model`."""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import click

from nndeploy.bundle.contents import contents_of
from nndeploy.bundle.manifest import PORTABLE, Manifest, Submodel
from nndeploy.bundle.manifest_check import all_submodels
from nndeploy.bundle.manifest_json import manifest_to_json
from nndeploy.bundle.place_reports import places_of
from nndeploy.bundle.report import CheckReport, Report
from nndeploy.cli.console import Cell, print_json, print_line, print_table
from nndeploy.cli.options.output_file import OUTPUT_FILE
from nndeploy.cli.options.quiet_option import QUIET
from nndeploy.cli.options.value_types import ANY_FILE, BUNDLE_OR_MODEL, SHAPE_OF_INPUT
from nndeploy.cli.views.bundle_contents import print_contents
from nndeploy.cli.views.candidate_lines import candidate_lines
from nndeploy.cli.views.choices_json import chain_to_json, choice_to_json
from nndeploy.cli.views.inspect_tables import show_tables
from nndeploy.cli.views.places_view import print_places
from nndeploy.cli.views.quantisation_view import print_quantisation
from nndeploy.cli.views.refusal_tables import WHY_NOT, print_nodes, refusal_lines
from nndeploy.cli.views.targets_view import print_targets
from nndeploy.errors import DataError, UsageError
from nndeploy.files.page import write_page
from nndeploy.files.whole_files import read_regular
from nndeploy.runtime.inspect_bundle import Inspection
from nndeploy.runtime.inspect_bundle import inspect as inspect_bundle
from nndeploy.runtime.places import ChainChoice
from nndeploy.runtime.select import Choice
from nndeploy.target.target import X86_64_LEVELS
from nndeploy.values.amounts import size_text
from nndeploy.values.plan_steps import PlanStep, is_fused

EXAMPLES = """\b
Examples:
  nndeploy inspect model.nnd
  nndeploy inspect model.onnx                      before anything is compiled
  nndeploy inspect model.nnd --html model.html     the graph coloured by backend, with the reasons
  nndeploy inspect model.nnd --html model.html --measured operators.json
  nndeploy inspect model.nnd --here                what this machine would select, and why
  nndeploy inspect model.nnd --chain rtx4090 -v    the backend of each node on that target, and why
  nndeploy inspect model.nnd -v                    every node, check, step and build message
  nndeploy inspect model.nnd --tables              the sizes and windows of each step on this machine
  nndeploy inspect model.nnd --tables --shape x=1,3,640,640
  nndeploy inspect model.nnd --json
"""

MAX_ANSWER_BYTES = 64 << 20
_IN_COLUMNS = ("kernel", "what", "window", "buffer_bytes", "layout")
"""What is told of a step and has a column of its own in the table of steps."""


@click.command("inspect", epilog=EXAMPLES)
@click.argument("bundle", type=BUNDLE_OR_MODEL, metavar="BUNDLE|MODEL")
@click.option("--html", "page", type=OUTPUT_FILE, help="Also write an HTML page with the graph to this file.")
@click.option(
    "--measured", type=ANY_FILE, multiple=True, metavar="FILE.json",
    help="Draw in the HTML page what `bench --operators --json` or `run --json` wrote of this bundle (repeatable).",
)  # fmt: skip
@click.option("--here", is_flag=True, help="Show which chain and variants this machine would select, and why.")
@click.option("--chain", "chain_id", help="Show only this chain (its ID, or 'portable'), also in the HTML page.")
@click.option("--tables", is_flag=True, help="Show the sizes and windows of each step on this machine, as diagrams.")
@click.option(
    "--shape", "shapes", type=SHAPE_OF_INPUT, multiple=True, metavar="INPUT=SIZES",
    help="Sizes of an input for --tables, such as x=1,3,640,640 (repeatable). Default: as the first stored sample.",
)  # fmt: skip
@QUIET
@click.option("--json", "as_json", is_flag=True, help="Print the manifest and report as JSON on standard output.")
@click.option("-v", "--verbose", is_flag=True, help="Show every node, check, step and member.")
def inspect(
    bundle: Path,
    page: Path | None,
    measured: tuple[str, ...],
    here: bool,
    chain_id: str | None,
    tables: bool,
    shapes: tuple[tuple[str, tuple[int, ...]], ...],
    as_json: bool,
    verbose: bool,
) -> None:
    """Show the contents of a BUNDLE, which backend runs what, and why.

    Of a MODEL that was not compiled: its inputs, outputs, operators and weights, and which backend would run what here.
    """
    if measured and page is None:
        raise UsageError("--measured is for the page", hint="--html FILE writes it")
    if bundle.suffix != ".nnd":
        from nndeploy.cli.commands.inspect_model import inspect_model, is_model

        if is_model(bundle):
            if page is not None or here or chain_id is not None or tables:
                what = "--html, --here, --chain and --tables are for a bundle"
                raise UsageError(what, hint=f"compile it first: nndeploy compile {bundle}")
            inspect_model(bundle, as_json=as_json, verbose=verbose)
            return
    if tables:
        if page is not None or chain_id is not None:
            raise UsageError("--html and --chain do not go with --tables")
        show_tables(inspect_bundle(bundle, here=True, shapes=dict(shapes)), as_json=as_json)
        return
    if shapes:
        raise UsageError("--shape is for --tables")
    found = inspect_bundle(bundle, here=here)
    chains = _chains(found.report)
    if chain_id is not None:
        if chain_id not in chains:
            raise UsageError(f"the bundle has no chain {chain_id!r:.80}", hint=f"it has {', '.join(chains)}")
        chains = {chain_id: chains[chain_id]}
    if page is not None:
        from nndeploy.cli.pages.inspect_page import inspect_page
        from nndeploy.cli.pages.measured_part import measured_part

        report, names = next(iter(chains.values())), {submodel.id for submodel in all_submodels(found.manifest)}
        drawn = "".join(measured_part(_answer(text), text, names) for text in measured)
        write_page(page, inspect_page(found.manifest, report, found.size_bytes, _fused_of_best(found), drawn))
    if as_json:
        print_json(_to_json(found))
    else:
        _print(found, chains, verbose)


def _answer(text: str) -> Any:
    """Returns what a file holds that a command wrote with --json."""
    try:
        return json.loads(read_regular(Path(text), MAX_ANSWER_BYTES))
    except (ValueError, RecursionError) as err:
        raise DataError("is not JSON", where=text) from err


def _chains(report: Report) -> dict[str, Report]:
    """Returns the report as it is seen from each chain, the portable one first."""
    return {PORTABLE: report, **{chain.id: report.of_chain(chain) for chain in report.used_chains}}


def _to_json(found: Inspection) -> dict[str, Any]:
    data = {
        "bundle": str(found.path),
        "size_bytes": found.size_bytes,
        "manifest": manifest_to_json(found.manifest),
        "report": found.report_data,
        "contents": [dataclasses.asdict(row) for row in contents_of(found.manifest)],
        "places": [dataclasses.asdict(row) for row in places_of(found.manifest)],
        "steps": [one._asdict() for one in found.steps],
        "signed": {"release": found.signed.release, "signatures": list(found.signed.key_ids)},
    }
    if found.chain is not None:
        choices = [choice_to_json(choice) for choice in found.choices]
        data["here"] = {"chain": chain_to_json(found.chain), "choices": choices}
    return data


def _fused_of_best(found: Inspection) -> dict[str, list[str]]:
    """Returns the fused steps of each submodel's best variant, a line each; those of others are other backends'."""
    best = {submodel.id: submodel.variants[0].id for submodel in all_submodels(found.manifest)}
    return {
        submodel: [", ".join(filter(None, _step_cells(step))) for step in steps if is_fused(step)]
        for submodel, variant, steps in found.steps
        if variant == best[submodel]
    }


def _print(found: Inspection, chains: Mapping[str, Report], verbose: bool) -> None:
    manifest, report = found.manifest, next(iter(chains.values()))
    print_line(f"{found.path}: {manifest.model_name}, {size_text(found.size_bytes)}, {len(report.nodes):,} nodes")
    print_line(f"model sha256 {manifest.model_sha256}")
    if found.signed.key_ids:
        print_line(str(found.signed))
    _print_values(manifest, report)
    for name, seen in chains.items():
        _print_submodels(seen, f" of the chain {name}" if manifest.target_chains else "")
    if found.chain is not None:
        _print_here(manifest, found.chain, found.choices)
    shown = {submodel.id for seen in chains.values() for submodel in seen.submodels}
    print_quantisation(report, verbose=verbose)
    print_targets(report)
    print_places([row for row in places_of(manifest) if row.chain in chains])
    _print_variants(manifest, shown)
    _print_steps(found, shown, verbose)
    _print_checks(chains, verbose)
    if verbose:
        for name, seen in chains.items():
            print_nodes(seen, "nodes" + (f" of the chain {name}" if manifest.target_chains else ""))
            _print_logs(seen)
    for line in candidate_lines(report):
        print_line(line)
    changed = ", ".join(f"{item.name} {item.count}" for item in report.passes if item.count)
    print_line(f"passes: {changed or 'nothing to change'}")
    print_line(f"goldens: {len(manifest.goldens)}, members: {len(manifest.members)}")
    print_contents(contents_of(manifest), verbose=verbose, sha256={n: m.sha256 for n, m in manifest.members.items()})
    for name, value in _flat(manifest.provenance):
        if not name.startswith("passes."):  # the report's line above has them
            print_line(f"{name}: {value}")


def _print_values(manifest: Manifest, report: Report) -> None:
    rows = [("input", item.name, str(item.type)) for item in manifest.inputs]
    rows += [("output", item.name, str(item.type)) for item in manifest.outputs]
    rows += [("range", name, f"{limits}, best {limits.best}") for name, limits in manifest.ranges.items()]
    rows += [
        (f"range of {chain.id}", name, f"{limits}, best {limits.best}; other sizes run on the portable chain")
        for chain in manifest.target_chains
        for name, limits in chain.ranges.items()
    ]
    rows += [("made by the pipeline", name, shape) for name, shape in report.shapes_of_pipeline.items()]
    rows += [("alias", name, f"the input {source}") for name, source in manifest.aliases.items()]
    if manifest.image_input is not None:
        how = manifest.image_input
        rows.append(
            ("image", how.name, f"{how.channels} {how.height} x {how.width}, {how.layout}, {len(how.labels)} labels")
        )
    print_table("inputs and outputs", ("", "name", "type"), rows)


def _print_submodels(report: Report, of_chain: str) -> None:
    rows = [
        (
            submodel.id,
            submodel.backend,
            f"{submodel.num_nodes:,}",
            f"{submodel.share:.1%}",
            refusal_lines(submodel.refusals),
        )
        for submodel in report.submodels
    ]
    columns = ("submodel", "backend", "nodes", "compute", WHY_NOT)
    print_table(f"submodels{of_chain}", columns, rows, right=("nodes", "compute"))


def _print_here(manifest: Manifest, chain: ChainChoice, choices: Sequence[Choice]) -> None:
    if manifest.target_chains or manifest.placings:
        passed = [(other.chain, other.reason) for other in chain.passed_over]
        rows = [*passed, (chain.id, f"TAKEN, on {chain.where}")]
        print_table("on this machine", ("chain", ""), rows)
    _print_choices(choices)


def _print_choices(choices: Sequence[Choice]) -> None:
    rows: list[Sequence[Cell]] = []
    for choice in choices:
        passed = [
            f"{other.variant}: {other.reason}" + (f" ({other.hint})" if other.hint else "")
            for other in choice.passed_over
        ]
        rows.append((choice.submodel, choice.variant or "NONE", choice.backend, passed or "-"))
    print_table("on this machine", ("submodel", "takes", "backend", "passed over"), rows)


def _print_variants(manifest: Manifest, shown: Set[str]) -> None:
    rows = [
        (
            submodel.id,
            variant.id,
            variant.backend,
            variant.target,
            _requires(variant.requires),
            ", ".join(
                word
                for word, holds in (
                    ("native code", variant.native_code),
                    ("not reproducible", not variant.deterministic),
                )
                if holds
            ),
            size_text(_size(manifest, submodel, number)),
        )
        for submodel in all_submodels(manifest)
        if submodel.id in shown
        for number, variant in enumerate(submodel.variants)
    ]
    columns = ("submodel", "variant", "backend", "target", "requires", "notes", "size")
    print_table("variants, best first", columns, rows, right=("size",))


def _print_steps(found: Inspection, shown: Set[str], verbose: bool) -> None:
    """Prints the fused steps of variants, or with `verbose` all steps and all that is told of them."""
    columns = ("kernel", "what", "window", "buffer", "layout")
    for submodel, variant, steps in found.steps:
        fused = [step for step in steps if is_fused(step)]
        name = f"{submodel}/{variant}"
        if submodel in shown and verbose:
            rows = [(*_step_cells(step), _other_notes(step)) for step in steps]
            print_table(f"steps of {name}", (*columns, "notes"), rows, right=("buffer",))
        elif submodel in shown and fused:
            title = f"fused steps of {name}, {len(fused)} of {len(steps)} (a window is rows x columns x channels)"
            print_table(title, columns, map(_step_cells, fused), right=("buffer",))


def _step_cells(step: PlanStep) -> tuple[str, ...]:
    kernel, what, window, buffer, layout = (step.get(name, "") for name in _IN_COLUMNS)
    return (
        str(kernel),
        str(what),
        str(window),
        f"{buffer / 1024:g} KiB" if isinstance(buffer, int) else buffer,
        str(layout),
    )


def _other_notes(step: PlanStep) -> str:
    return ", ".join(f"{name} {value}" for name, value in step.items() if name not in _IN_COLUMNS)


def _requires(requires: Mapping[str, Any]) -> str:
    """Returns what a variant needs in words, "x86_64 with x86-64-v3"; the flags of an x86-64 level by its name."""
    if "machines" in requires:
        return ", or ".join(map(_requires, requires["machines"]))
    features = set(requires.get("cpu_features", ()))
    if reached := [name for name, flags in X86_64_LEVELS.items() if features.issuperset(flags)]:
        more = features.difference(*(X86_64_LEVELS[name] for name in reached))
        listed = [reached[-1], *sorted(more)]
    else:
        listed = sorted(features)
    cpu = " with ".join(filter(None, (str(requires.get("arch", "")), ", ".join(listed))))
    others = [
        f"{name}: {', '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in requires.items()
        if name not in ("arch", "cpu_features")
    ]
    return "; ".join(filter(None, (cpu, *others))) or "-"


def _size(manifest: Manifest, submodel: Submodel, number: int) -> int:
    members = set(submodel.variants[number].files.values())
    return sum(manifest.members[name].size_bytes for name in members if name in manifest.members)


def _print_checks(chains: Mapping[str, Report], verbose: bool) -> None:
    """Prints the largest error of each output; of the whole alone, or with `verbose` of every submodel too."""
    groups: dict[tuple[str, str, str], list[CheckReport]] = {}
    for check in dict.fromkeys(check for report in chains.values() for check in report.checks):
        if verbose or check.scope == "whole":
            groups.setdefault((check.scope, check.backend, check.output), []).append(check)
    rows = [
        (
            scope,
            backend or "-",
            output,
            str(len(checks)),
            "ok" if all(check.ok for check in checks) else "FAILED",
            _worst(max, [check.max_abs for check in checks]),
            _worst(max, [check.max_rel for check in checks]),
            _worst(min, [check.cosine for check in checks], ".8f"),
            next((check.note for check in checks if check.note), ""),
        )
        for (scope, backend, output), checks in groups.items()
    ]
    columns = ("scope", "backend", "output", "samples", "", "max abs", "max rel", "cosine", "note")
    if rows:
        on = next(iter(chains.values())).samples_text
        print_table(f"error against the original model, on {on}", columns, rows, right=("samples", *columns[5:8]))


def _worst(pick: Callable[[list[float]], float], figures: list[float | None], form: str = ".3g") -> str:
    known = [figure for figure in figures if figure is not None]
    return format(pick(known), form) if known else "-"


def _print_logs(report: Report) -> None:
    for log in report.logs:
        print_line(f"build log of {log.submodel}/{log.variant}:")
        for line in log.text.splitlines():
            print_line(f"  {line}")


def _flat(data: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Returns nested plain data as (dotted name, text), without what says nothing."""
    rows: list[tuple[str, str]] = []
    for name, value in data.items():
        if isinstance(value, Mapping):
            rows += _flat(value, f"{prefix}{name}.")
        elif value not in (None, [], "", False):
            text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            rows.append((f"{prefix}{name}", text))
    return rows
