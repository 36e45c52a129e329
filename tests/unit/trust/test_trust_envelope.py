# SPDX-License-Identifier: Apache-2.0
"""The member `signature`: one text for one list of envelopes, and nothing in it that nobody signed."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from nndeploy.errors import BundleError
from nndeploy.trust.envelope import Envelope, Signature, decode_envelopes, encode_envelopes, signed_bytes

TWO = (
    Envelope(b'{"a":1}', (Signature("0" * 64, b"\1" * 64), Signature("f" * 64, b"\2" * 64))),
    Envelope(b"{}", (Signature("0" * 64, b"\3" * 64),)),
)


def test_envelopes_come_back() -> None:
    assert decode_envelopes(encode_envelopes(TWO)) == TWO
    assert encode_envelopes(decode_envelopes(encode_envelopes(TWO))) == encode_envelopes(TWO)


def test_what_is_signed_is_the_encoding_of_dsse() -> None:
    """The example of DSSE's protocol.md, with our type in place of its."""
    assert signed_bytes(b"hello world") == b"DSSEv1 28 application/vnd.in-toto+json 11 hello world"


def test_every_changed_byte_is_refused_or_says_something_else() -> None:
    text = encode_envelopes(TWO)
    for at in range(len(text)):
        for value in (0, 10, 32, 34, 61, 65, 97, 125, 200, text[at] ^ 1, text[at] ^ 32):
            mutant = text[:at] + bytes([value]) + text[at + 1 :]
            if mutant == text:
                continue
            try:
                found = decode_envelopes(mutant)
            except BundleError:
                continue
            assert found != TWO
            assert encode_envelopes(found) == mutant


def test_every_cut_is_refused() -> None:
    text = encode_envelopes(TWO)
    whole = text.index(b"\n") + 1
    for end in set(range(len(text))) - {whole}:
        with pytest.raises(BundleError):
            decode_envelopes(text[:end])


def edited(change: Callable[[dict[str, Any]], object]) -> bytes:
    data = json.loads(encode_envelopes(TWO[:1]))
    change(data)
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode() + b"\n"


@pytest.mark.parametrize(("change", "reason"), [
    (lambda data: data.update(more=1), "unknown field"),
    (lambda data: data["signatures"].reverse(), "order of their keys"),
    (lambda data: data["signatures"].append(data["signatures"][1]), "order of their keys"),
    (lambda data: data["signatures"].clear(), "1 item or more"),
    (lambda data: data["signatures"][0].update(sig=base64.b64encode(b"short").decode()), "has 64 bytes"),
    (lambda data: data["signatures"][0].update(keyid="F" * 64), "hexadecimal"),
    (lambda data: data.update(payloadType="text/plain"), "expected one of"),
    (lambda data: data.update(payload="e30"), "expected base64"),
    (lambda data: data.update(payload="e31="), "the one base64 text"),
    (lambda data: data.pop("payload"), "missing"),
])  # fmt: skip
def test_an_envelope_that_is_none_is_refused_with_the_reason(change: Any, reason: str) -> None:
    with pytest.raises(BundleError, match=reason):
        decode_envelopes(edited(change))
