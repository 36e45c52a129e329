# SPDX-License-Identifier: Apache-2.0
"""An entry of the cache: what was built from which parts, and who says so.

    {"payload": <base64 of the canonical JSON of an Entry>, "payloadType": ..., "signatures": [{"keyid", "sig"}]}

Law: `decode(encode(entry, signer)) == entry`; a text that no key signed which this account trusts with code is no
entry, nor is one whose key is not that of its parts. So it does not matter who can write to a cache.

Source: DSSE v1.0.2, as `nndeploy.trust.envelope`.
"""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nndeploy.build_cache.key import Parts, key_of
from nndeploy.bundle.json_fields import Fields
from nndeploy.errors import BundleError, PolicyError
from nndeploy.files.pieces import ANY_SIZE
from nndeploy.files.strict_json import canonical_json, parse_json
from nndeploy.trust.envelope import Envelope, Signature, decode_envelopes, encode_envelopes, signed_bytes
from nndeploy.trust.signatures import signed_by
from nndeploy.trust.signers import Signer
from nndeploy.trust.trust_store import CODE, TrustStore

PAYLOAD_TYPE = "application/vnd.nndeploy.cache-entry+json"
MAX_ENTRY_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Blob:
    """A file of the cache: SHA-256 in hexadecimal digits, and size in bytes."""

    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Entry:
    """What was built from `parts` in `seconds`: files by name. `about` is what else is known, plain data."""

    parts: Parts
    outputs: Mapping[str, Blob]
    seconds: float = 0.0
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The key that it is found by."""
        return key_of(self.parts)

    @property
    def size(self) -> int:
        """How many bytes its files have together."""
        return sum(blob.size for blob in self.outputs.values())


def encode(entry: Entry, signer: Signer) -> bytes:
    """Returns the text of an entry, signed."""
    payload = canonical_json(
        {
            "about": entry.about,
            "outputs": {name: {"sha256": blob.sha256, "size": blob.size} for name, blob in entry.outputs.items()},
            "parts": entry.parts,
            "seconds": entry.seconds,
        }
    )
    signature = Signature(signer.public.id, signer.sign(signed_bytes(payload, PAYLOAD_TYPE)))
    return encode_envelopes([Envelope(payload, (signature,), PAYLOAD_TYPE)])


def decode(text: bytes, key: str, store: TrustStore | None, today: dt.date) -> Entry:
    """Returns the entry of `key` that a text says; with no `store`, whoever signed it: only to know what to keep.

    Raises:
        BundleError: it is malformed, or the entry of another key.
        PolicyError: no key that `store` trusts with code signed it.
    """
    envelope, *others = decode_envelopes(text, PAYLOAD_TYPE)
    if others:
        raise BundleError("expected one line")
    if store is not None and all(one.problem for one in signed_by(envelope, store, CODE, today)):
        raise PolicyError("no key trusted for code has signed it", hint="nndeploy key trust KEY.pub")
    fields = Fields(parse_json(envelope.payload, MAX_ENTRY_BYTES), "", ignore_unknown=False)
    outputs = {name: _blob(one) for name, one in fields.named_fields("outputs")}
    parts = fields.names_by_name("parts")
    entry = Entry(parts, outputs, fields.number_from_zero("seconds"), fields.fields("about").plain())
    fields.end()
    if entry.key != key:
        raise BundleError("it is the entry of another key")
    return entry


def _blob(fields: Fields) -> Blob:
    blob = Blob(fields.sha256("sha256"), fields.integer("size", most=ANY_SIZE))
    fields.end()
    return blob
