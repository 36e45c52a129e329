# SPDX-License-Identifier: Apache-2.0
"""`nndeploy diff`: what differs between two bundles, part by part; nothing is run."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from nndeploy.bundle.manifest import Manifest
from nndeploy.bundle.manifest_check import all_submodels
from nndeploy.bundle.manifest_json import manifest_to_json
from nndeploy.bundle.reader import Bundle, open_bundle
from nndeploy.bundle.report import Report, report_from_json
from nndeploy.cli.console import print_json, print_line, print_table, size_text
from nndeploy.cli.value_types import BUNDLE_FILE

EXAMPLES = """\b
Examples:
  nndeploy diff old.nnd new.nnd
  nndeploy diff old.nnd new.nnd --json
"""

MAX_ROWS = 40
"""How many differences of one part the table shows; --json has all."""
MAX_TEXT = 100


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that differs: `a` or `b` is None where only the other bundle has it."""

    part: str
    name: str
    a: Any
    b: Any


@click.command("diff", epilog=EXAMPLES)
@click.argument("a", type=BUNDLE_FILE)
@click.argument("b", type=BUNDLE_FILE)
@click.option("--json", "as_json", is_flag=True, help="Print every difference as JSON on standard output.")
@click.pass_context
def diff(context: click.Context, a: Path, b: Path, as_json: bool) -> None:
    """Show how bundle B differs from bundle A.

    Exit code 0: they are the same; 1: they differ.
    """
    with open_bundle(a) as first, open_bundle(b) as second:
        found = differences(first, second)
        sizes = (first.size_bytes, second.size_bytes)
    if as_json:
        records = [{"part": d.part, "name": d.name, "a": d.a, "b": d.b} for d in found]
        print_json({"a": str(a), "b": str(b), "same": not found, "size_bytes": sizes, "differences": records})
    elif found:
        _print_differences(found, a, b)
        print_line(f"{a}: {size_text(sizes[0])}, {b}: {size_text(sizes[1])}, {len(found)} differences")
    else:
        print_line(f"{a} and {b} are the same")
    context.exit(1 if found else 0)


def differences(a: Bundle, b: Bundle) -> list[Difference]:
    """Returns all that differs between two bundles, part by part."""
    parts_a, parts_b = _parts(a), _parts(b)
    found = [
        difference
        for part in dict.fromkeys((*parts_a, *parts_b))
        for difference in _of_part(part, parts_a.get(part, {}), parts_b.get(part, {}))
    ]
    # Whatever no part tells apart: "the same" must mean the same.
    return found or _of_part("manifest", manifest_to_json(a.manifest), manifest_to_json(b.manifest))


def _of_part(part: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> list[Difference]:
    return [
        Difference(part, name, a.get(name), b.get(name))
        for name in dict.fromkeys((*a, *b))
        if a.get(name) != b.get(name)
    ]


def _parts(bundle: Bundle) -> dict[str, dict[str, Any]]:
    """Returns the parts of a bundle in the order in which they matter, each as name -> plain data."""
    manifest, report = bundle.manifest, report_from_json(bundle.report())
    plain = manifest_to_json(manifest)
    provenance = {name: value for name, value in plain["provenance"].items() if isinstance(value, Mapping)}
    others = {name: value for name, value in plain["provenance"].items() if name not in provenance}
    return {
        "model": {"name": manifest.model_name, "sha256": manifest.model_sha256},
        "input": {item.name: str(item.type) for item in manifest.inputs},
        "output": {item.name: str(item.type) for item in manifest.outputs},
        "range": {name: str(limits) for name, limits in manifest.ranges.items()},
        **{f"provenance.{name}": dict(value) for name, value in provenance.items()},
        "provenance": others,
        "submodel": _submodels(manifest),
        "variant": {
            f"{submodel['id']}/{variant['id']}": variant
            for chain in (plain, *plain.get("target_chains", ()))
            for submodel in chain["submodels"]
            for variant in submodel["variants"]
        },
        "chain": {chain.id: f"{len(chain.submodels)} submodels for {chain.target}" for chain in manifest.target_chains},
        "node": _nodes(report),
        "max error": _errors(report),
        "tolerance": plain["tolerances"],
        "image input": {"how": plain["image_input"]},
        "alias": dict(manifest.aliases),
        "library of delays": dict(manifest.pace_libraries),
        "amounts": {"operators": manifest.pace_operators},
        "member": {name: f"{m.size_bytes} bytes, sha256 {m.sha256}" for name, m in manifest.members.items()},
    }


def _nodes(report: Report) -> dict[str, Any]:
    found = {node.name: f"{node.backend} in {node.submodel}" for node in report.nodes}
    for chain in report.target_chains:
        found |= {f"{chain.id}: {node.name}": f"{node.backend} in {node.submodel}" for node in chain.nodes}
    return found


def _submodels(manifest: Manifest) -> dict[str, Any]:
    return {
        submodel.id: ", ".join(f"{variant.backend} for {variant.target}" for variant in submodel.variants)
        for submodel in all_submodels(manifest)
    }


def _errors(report: Report) -> dict[str, Any]:
    """Returns the largest absolute error of each output, by scope and backend."""
    worst: dict[str, float] = {}
    for check in (*report.checks, *(check for chain in report.target_chains for check in chain.checks)):
        if check.max_abs is not None:
            name = f"{check.scope} {check.backend} {check.output}"
            worst[name] = max(worst.get(name, 0.0), check.max_abs)
    return worst


def _print_differences(found: list[Difference], a: Path, b: Path) -> None:
    rows: list[tuple[str, str, str, str]] = []
    for part in dict.fromkeys(difference.part for difference in found):
        of_part = [difference for difference in found if difference.part == part]
        rows += [(d.part, d.name, _text(d.a), _text(d.b)) for d in of_part[:MAX_ROWS]]
        if len(of_part) > MAX_ROWS:
            rows.append((part, f"... {len(of_part) - MAX_ROWS} more", "", ""))
    print_table("differences", ("part", "name", str(a), str(b)), rows)


def _text(value: Any) -> str:
    text = "-" if value is None else str(value)
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 3] + "..."
