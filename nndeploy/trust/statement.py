# SPDX-License-Identifier: Apache-2.0
"""What a signature of a bundle says: in-toto statements over every member, made of its manifest alone.

The first says what the bundle is (`bundle_statement`): each member with its SHA-256 and size, the model's name, the
release. The second says how it was made (`provenance_statement`), as SLSA's provenance. Law: a bundle has one text for
each, so who checks a signature makes the text again and compares it; a payload is read for its release alone.

Source: in-toto attestation v1, "Statement"; SLSA v1.0, "Provenance".
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from nndeploy.bundle.manifest import Manifest
from nndeploy.bundle.manifest_json import MANIFEST_NAME
from nndeploy.errors import BundleError, DataError, UsageError
from nndeploy.files.strict_json import canonical_json, parse_json

STATEMENT = "https://in-toto.io/Statement/v1"
BUNDLE_PREDICATE = "urn:nndeploy:bundle:1"
PROVENANCE_PREDICATE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "urn:nndeploy:compile:1"
_RELEASE = re.compile(r"(0|[1-9][0-9]{0,8})(\.(0|[1-9][0-9]{0,8})){0,5}")


def bundle_statement(manifest: Manifest, manifest_text: bytes | memoryview, release: str) -> bytes:
    """Returns the payload that says what a bundle holds; `manifest_text` is its member `manifest.json`."""
    digests = {name: member.sha256 for name, member in manifest.members.items()}
    sizes = {name: member.size_bytes for name, member in manifest.members.items()}
    digests[MANIFEST_NAME], sizes[MANIFEST_NAME] = hashlib.sha256(manifest_text).hexdigest(), len(manifest_text)
    predicate = {"model": {"name": manifest.model_name, "release": release}, "sizes": sizes}
    return _statement(digests, BUNDLE_PREDICATE, predicate)


def provenance_statement(manifest: Manifest, manifest_text: bytes | memoryview) -> bytes:
    """Returns the payload that says how a bundle was made."""
    found = manifest.provenance
    tools = found.get("tools", {})
    version = tools.get("nndeploy", "") if isinstance(tools, Mapping) else ""
    predicate = {
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": {"model": manifest.model_name, "options": found.get("options", {})},
            "internalParameters": {key: found[key] for key in found if key not in ("options", "tools")},
            "resolvedDependencies": [
                {"digest": {"sha256": manifest.model_sha256}, "name": manifest.model_name},
                *_tools(tools),
            ],
        },
        "runDetails": {"builder": {"id": "urn:nndeploy:compile", "version": {"nndeploy": version}}},
    }
    return _statement({MANIFEST_NAME: hashlib.sha256(manifest_text).hexdigest()}, PROVENANCE_PREDICATE, predicate)


def release_of(payload: bytes) -> str:
    """Returns the release that the first statement of a bundle says; all else is for the caller to compare.

    Raises:
        BundleError: the payload is no such statement.
    """
    try:
        found: Any = parse_json(payload, len(payload))
        release = found["predicate"]["model"]["release"]
    except (KeyError, TypeError) as err:
        raise BundleError("no statement about a bundle is signed") from err
    if not isinstance(release, str) or (release and not _RELEASE.fullmatch(release)):
        raise BundleError(f"the release {release!r:.60} is none")
    return release


def release_numbers(text: str) -> tuple[int, ...]:
    """Returns a release as numbers that are ordered as releases are: 1.10 is behind 1.9, 1.0 is 1.

    Raises:
        DataError: the text is no release.
    """
    if not _RELEASE.fullmatch(text):
        raise DataError(f"{text!r:.60} is no release", hint="numbers with dots, as in 1.4.0")
    numbers = [int(part) for part in text.split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def check_release(text: str) -> str:
    """Returns what an option gave as a release.

    Raises:
        UsageError: it is none.
    """
    try:
        release_numbers(text)
    except DataError as err:
        raise UsageError(err.what, hint=err.hint) from err
    return text


def _statement(digests: Mapping[str, str], kind: str, predicate: Mapping[str, Any]) -> bytes:
    subjects = [{"digest": {"sha256": digests[name]}, "name": name} for name in sorted(digests)]
    return canonical_json({"_type": STATEMENT, "predicate": predicate, "predicateType": kind, "subject": subjects})


def _tools(tools: object) -> list[dict[str, Any]]:
    """Returns the libraries that took part, as SLSA lists dependencies."""
    if not isinstance(tools, Mapping):
        return []
    return [{"annotations": {"version": str(tools[name])}, "name": str(name)} for name in sorted(tools)]
