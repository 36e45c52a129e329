# SPDX-License-Identifier: Apache-2.0
"""Signatures of an artifact that lie beside it in its repository, as cosign puts them: tag `sha256-HEX.sig`.

The tag names a manifest with one layer a signature: the blob is the payload (`simple_signing`), an annotation the
signature in base64. Whoever may write to the registry may write these too, so nothing counts but the mathematics: a
layer counts where the key signed its payload and the payload names the digest that was asked for; whatever is wrong
with a layer, it counts as none. Two who sign at the same time may lose one of both signatures, as with cosign.

Source: cosign, specs/SIGNATURE_SPEC.md, "Storage".
"""

import base64
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from nndeploy.errors import BundleError, DataError, MissingInputError, PolicyError
from nndeploy.files.strict_json import canonical_json, parse_json
from nndeploy.registry.artifact import MANIFEST_TYPE, MAX_ARTIFACT_BYTES, Blob
from nndeploy.registry.connection import Connection
from nndeploy.registry.reference import DIGEST, Reference
from nndeploy.registry.remote import Remote, digest_of
from nndeploy.registry.simple_signing import MAX_PAYLOAD_BYTES, PAYLOAD_TYPE, digest_in
from nndeploy.trust.verifying_key import VerifyingKey

MAX_SIGNATURES = 64
SIGNATURE = "dev.cosignproject.cosign/signature"
_CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
_EMPTY = {"schemaVersion": 2, "mediaType": MANIFEST_TYPE, "layers": []}


def add_signatures(connection: Connection, artifact: Reference, payload: bytes, signatures: Sequence[bytes]) -> None:
    """Puts signatures of a payload beside an artifact, which need not be there yet; those that are there stay.

    Raises:
        DataError: what lies there are no signatures, or too many.
        UnavailableError, PolicyError, BusyError: the registry does not take them.
    """
    remote = _beside(connection, artifact)
    try:
        manifest = _manifest(remote)
    except MissingInputError:
        manifest = _EMPTY
    layers = list(manifest["layers"])
    known = {(one["digest"], _text(one)) for one in layers}
    made = [_layer(payload, one) for one in dict.fromkeys(signatures)]
    layers += [one for one in made if (one["digest"], _text(one)) not in known]
    if len(layers) == len(manifest["layers"]):
        return
    if len(layers) > MAX_SIGNATURES:
        raise BundleError(f"{len(layers)} signatures; at most {MAX_SIGNATURES} are allowed", where=remote.where)
    # Tools that add one more read the config, where an image lists its layers.
    rootfs = {"type": "layers", "diff_ids": [one["digest"] for one in layers]}
    config = canonical_json({"architecture": "", "config": {}, "os": "", "rootfs": rootfs})
    for blob in (payload, config):
        remote.put_blob(digest_of(blob), blob)
    remote.put_manifest(canonical_json({**manifest, "config": _descriptor(_CONFIG_TYPE, config), "layers": layers}))


def check_signed(connection: Connection, artifact: Reference, key: VerifyingKey) -> None:
    """Returns where a key signed the digest of an artifact.

    Raises:
        PolicyError: it did not, as far as the registry tells.
        UnavailableError, BusyError, InputOutputError: the registry does not tell.
    """
    remote = _beside(connection, artifact)
    try:
        problems = []
        for layer in _manifest(remote)["layers"]:
            problems.append(_problem(remote, layer, artifact.digest, key))
            if not problems[-1]:
                return
        why = f"of {len(problems)} signatures, none is valid: {'; '.join(sorted(set(problems))[:3])}"
    except MissingInputError:
        why = "it has no signature there"
    except DataError as err:
        why = f"its signatures there are invalid: {err.what}"
    raise PolicyError(f"not signed by the key {key.id:.16}: {why}", where=str(artifact))


def _beside(connection: Connection, artifact: Reference) -> Remote:
    return Remote(connection, replace(artifact, tag=f"{artifact.digest.replace(':', '-')}.sig", digest=""))


def _manifest(remote: Remote) -> dict[str, Any]:
    """Returns the manifest of signatures; each of its layers is an object with a digest and annotations."""
    try:
        found: Any = parse_json(remote.manifest(), MAX_ARTIFACT_BYTES, is_canonical=False)
        match found:
            case {"schemaVersion": 2, "mediaType": str(kind), "layers": [*layers]} if kind == MANIFEST_TYPE:
                if not 0 < len(layers) <= MAX_SIGNATURES:
                    raise BundleError(f"{len(layers)} layers, where 1 to {MAX_SIGNATURES} are allowed")
                if all(_is_layer(one) for one in layers):
                    return dict(found)
    except BundleError as err:
        raise err.about(remote.where) from None
    raise BundleError("no manifest of signatures", where=remote.where)


def _is_layer(found: object) -> bool:
    match found:
        case {"mediaType": str(), "digest": str(digest), "size": int(size), "annotations": dict()}:
            return DIGEST.fullmatch(digest) is not None and type(size) is int
    return False


def _problem(remote: Remote, layer: dict[str, Any], digest: str, key: VerifyingKey) -> str:
    """Returns why a layer is no signature of a digest by a key, "" where it is one."""
    if layer["mediaType"] != PAYLOAD_TYPE or not 0 < layer["size"] <= MAX_PAYLOAD_BYTES:
        return f"a layer is no payload of at most {MAX_PAYLOAD_BYTES} bytes"
    try:
        signature = base64.b64decode(_text(layer), validate=True)
        payload = remote.small_blob(Blob(layer["digest"].removeprefix("sha256:"), layer["size"]))
        if not key.is_signature(signature, payload):
            return "a signature is not of this key"
        return "" if digest_in(payload) == digest else "a signature is of another artifact"
    except (DataError, MissingInputError) as err:
        return err.what
    except ValueError:
        return "a signature is no base64"


def _layer(payload: bytes, signature: bytes) -> dict[str, Any]:
    annotations = {SIGNATURE: base64.b64encode(signature).decode("ascii")}
    return {**_descriptor(PAYLOAD_TYPE, payload), "annotations": annotations}


def _text(layer: dict[str, Any]) -> str:
    return str(layer["annotations"].get(SIGNATURE, ""))


def _descriptor(kind: str, data: bytes) -> dict[str, Any]:
    return {"mediaType": kind, "digest": digest_of(data), "size": len(data)}
