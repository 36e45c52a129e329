# SPDX-License-Identifier: Apache-2.0
"""DSSE envelopes: a payload, and who signed it; the text of a bundle's member `signature`.

The member is a line of canonical JSON for each envelope, as in-toto's bundles of attestations are. Law:
`encode_envelopes(decode_envelopes(text)) == text`, and every text of which that does not hold is refused, so nothing
can be written into it that nobody signed.

Source: DSSE v1.0.2 (secure-systems-lab/dsse), protocol.md and envelope.md; in-toto attestation v1, "Bundle".
"""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass

from nndeploy.bundle.json_fields import Fields
from nndeploy.errors import BundleError
from nndeploy.files.strict_json import canonical_json, parse_json
from nndeploy.trust.public_key import SIGNATURE_BYTES

PAYLOAD_TYPE = "application/vnd.in-toto+json"
MAX_ENVELOPES = 2
MAX_SIGNATURES = 64


@dataclass(frozen=True, slots=True)
class Signature:
    """The signature of the key with an id."""

    key_id: str
    value: bytes


@dataclass(frozen=True, slots=True)
class Envelope:
    """A payload, its type, and its signatures by the ids of their keys."""

    payload: bytes
    signatures: tuple[Signature, ...]
    payload_type: str = PAYLOAD_TYPE

    @property
    def signed(self) -> bytes:
        """What signers sign: DSSE's pre-authentication encoding of the payload."""
        return signed_bytes(self.payload, self.payload_type)


def signed_bytes(payload: bytes, payload_type: str = PAYLOAD_TYPE) -> bytes:
    """Returns DSSE's pre-authentication encoding of a payload."""
    kind = payload_type.encode("ascii")
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def encode_envelopes(envelopes: Sequence[Envelope]) -> bytes:
    """Returns the text of envelopes, a line for each."""
    return b"".join(canonical_json(_to_json(envelope)) + b"\n" for envelope in envelopes)


def decode_envelopes(text: bytes, payload_type: str = PAYLOAD_TYPE) -> tuple[Envelope, ...]:
    """Returns the envelopes that a text says, all of one type of payload.

    Raises:
        BundleError: it is not the text of any.
    """
    lines = text.split(b"\n")
    if lines.pop() or not 0 < len(lines) <= MAX_ENVELOPES:
        raise BundleError(f"expected 1 to {MAX_ENVELOPES} whole lines")
    return tuple(_from_json(line, payload_type, f"line {number}") for number, line in enumerate(lines, 1))


def _to_json(envelope: Envelope) -> dict[str, object]:
    return {
        "payload": _text(envelope.payload),
        "payloadType": envelope.payload_type,
        "signatures": [{"keyid": one.key_id, "sig": _text(one.value)} for one in envelope.signatures],
    }


def _from_json(line: bytes, payload_type: str, where: str) -> Envelope:
    try:
        fields = Fields(parse_json(line, len(line)), "", ignore_unknown=False)
        payload = _bytes(fields, "payload")
        fields.choice("payloadType", (payload_type,))
        signatures = []
        for one in fields.list_of_fields("signatures", least=1):
            signatures.append(Signature(one.sha256("keyid"), _bytes(one, "sig")))
            one.end()
        fields.end()
        ids = [one.key_id for one in signatures]
        if ids != sorted(set(ids)) or len(ids) > MAX_SIGNATURES:
            raise BundleError(f"expected 1 to {MAX_SIGNATURES} signatures, in the order of their keys")
        if any(len(one.value) != SIGNATURE_BYTES for one in signatures):
            raise BundleError(f"a signature has {SIGNATURE_BYTES} bytes")
    except BundleError as err:
        err.within(where)
        raise
    return Envelope(payload, tuple(signatures), payload_type)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _bytes(fields: Fields, key: str) -> bytes:
    text = fields.text(key)
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as err:
        raise fields.refuse(key, "base64") from err
    if _text(data) != text:
        raise fields.refuse(key, "the one base64 text of some bytes")
    return data
