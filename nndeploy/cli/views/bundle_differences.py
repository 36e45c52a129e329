# SPDX-License-Identifier: Apache-2.0
"""What differs between two bundles, part by part, in the order in which the parts matter, each with its class."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from nndeploy.bundle.manifest import Manifest
from nndeploy.bundle.manifest_check import all_submodels
from nndeploy.bundle.manifest_json import manifest_to_json
from nndeploy.bundle.place_reports import places_of
from nndeploy.bundle.reader import Bundle
from nndeploy.bundle.report import Report, report_from_json
from nndeploy.cli.views.difference_classes import Classes
from nndeploy.values.types import ranges_text

_CHECK_OF = ("scope", "backend", "output", "sample")
"""What a comparison is known by, its scope first."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that differs: `a` or `b` is None where only the other bundle has it.

    `kind` is one of `difference_classes.CLASSES`, `submodel` the one that it is of, "" where it is of none.
    """

    part: str
    name: str
    a: Any
    b: Any
    kind: str = ""
    submodel: str = ""


def differences(a: Bundle, b: Bundle) -> list[Difference]:
    """Returns all that differs between two bundles, part by part.

    Raises:
        BundleError: a bundle is damaged.
    """
    parts_a, parts_b, classes = _parts(a), _parts(b), Classes(a.manifest, b.manifest)
    submodels = {submodel.id for manifest in (a.manifest, b.manifest) for submodel in all_submodels(manifest)}
    return [
        Difference(
            part,
            name,
            old,
            new,
            classes.of(part, name, old, new),
            _submodel_of(part, name, old if new is None else new, classes, submodels),
        )
        for part in dict.fromkeys((*parts_a, *parts_b))
        for name, old, new in _changed(parts_a.get(part, {}), parts_b.get(part, {}))
        if not (part == "stored" and _is_told(name, parts_a["member"], parts_b["member"]))
    ]


def _changed(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    return [(name, a.get(name), b.get(name)) for name in dict.fromkeys((*a, *b)) if a.get(name) != b.get(name)]


def _is_told(member: str, a: Mapping[str, str], b: Mapping[str, str]) -> bool:
    """Returns whether a member differs in more than how it is stored."""
    return a.get(member) != b.get(member)


def _submodel_of(part: str, name: str, value: Any, classes: Classes, submodels: set[str]) -> str:
    """Returns the submodel that a difference is of, "" where it is of none."""
    if part in ("member", "stored"):
        owner = classes.owner(name)
        return "" if owner is None else owner.submodel
    known = {
        "submodel": name,
        "boundary": name,
        "variant": name.partition("/")[0],
        "node": str(value).rpartition(" in ")[2],
        "place": name.rpartition(": ")[2],
        "max error": name.partition(" ")[0],
        "check": name.partition(" ")[0],
    }.get(part, "")
    return known if known in submodels else ""


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
        "boundary": {
            submodel.id: f"{', '.join(submodel.inputs)} to {', '.join(submodel.outputs)}"
            for submodel in all_submodels(manifest)
        },
        "variant": {
            f"{submodel['id']}/{variant['id']}": variant
            for chain in (plain, *plain.get("target_chains", ()))
            for submodel in chain["submodels"]
            for variant in submodel["variants"]
        },
        "chain": {chain.id: f"{len(chain.submodels)} submodels for {chain.target}" for chain in manifest.target_chains},
        "range of a chain": {chain.id: ranges_text(chain.ranges) for chain in manifest.target_chains if chain.ranges},
        "place": {f"{row.chain}: {row.submodel}": row.place for row in places_of(manifest)},
        "placing": dict(plain.get("placings", {})),
        "value": _values(manifest),
        "node": _nodes(report),
        "max error": _errors(report),
        "check": {" ".join(str(check.get(key, "")) for key in _CHECK_OF): dict(check) for check in manifest.checks},
        "golden": {str(number): asdict(golden) for number, golden in enumerate(manifest.goldens)},
        "constants": {"member": manifest.constants},
        "default": dict(manifest.defaults),
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
        "stored": {
            name: f"{member.size_bytes} bytes, sha256 {member.sha256}" for name, member in manifest.members.items()
        },
        "signature": {"sha256": sha256(bundle.signature).hexdigest() if bundle.signature else ""},
    }


def _values(manifest: Manifest) -> dict[str, str]:
    found = {name: str(kind) for name, kind in manifest.values.items()}
    for chain in manifest.target_chains:
        found |= {f"{chain.id}: {name}": str(kind) for name, kind in chain.values.items()}
    return found


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
