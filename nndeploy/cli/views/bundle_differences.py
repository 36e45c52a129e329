# SPDX-License-Identifier: Apache-2.0
"""What differs between two bundles, part by part, in the order in which the parts matter."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nndeploy.bundle.manifest import Manifest
from nndeploy.bundle.manifest_check import all_submodels
from nndeploy.bundle.manifest_json import manifest_to_json
from nndeploy.bundle.place_reports import places_of
from nndeploy.bundle.reader import Bundle
from nndeploy.bundle.report import Report, report_from_json


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that differs: `a` or `b` is None where only the other bundle has it."""

    part: str
    name: str
    a: Any
    b: Any


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
        "place": {f"{row.chain}: {row.submodel}": row.place for row in places_of(manifest)},
        "node": _nodes(report),
        "max error": _errors(report),
        "tolerance": plain["tolerances"],
        "image input": {"how": plain["image_input"]},
        "alias": dict(manifest.aliases),
        "library of delays": dict(manifest.pace_libraries),
        "amounts": {"operators": manifest.pace_operators},
        "member": {
            name: f"{real.size_bytes} bytes, sha256 {real.sha256}"
            for name in manifest.members
            for real in [manifest.real(name)]
        },
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
