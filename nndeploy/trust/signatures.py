# SPDX-License-Identifier: Apache-2.0
"""The signatures of an open bundle against a trust store: who signed it, and what that allows here.

In: a bundle whose manifest was checked, a store. Out: a `SignatureVerdict`. Law: a verdict allows nothing unless as
many trusted keys as the store asks for signed the one statement that this bundle has, and its release is not below
the floor of its model; whatever is wrong with a signature, it counts as none.
"""

import datetime as dt
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from nndeploy.bundle.manifest import Manifest
from nndeploy.bundle.manifest_check import all_submodels
from nndeploy.bundle.reader import Bundle
from nndeploy.errors import BundleError
from nndeploy.trust.envelope import Envelope, decode_envelopes
from nndeploy.trust.statement import bundle_statement, provenance_statement, release_numbers, release_of
from nndeploy.trust.trust_store import TrustStore


@dataclass(frozen=True, slots=True)
class SignedBy:
    """One signature: the key's id, its name in the store ("" where it is unknown), and why it counts for nothing."""

    key_id: str
    name: str
    problem: str = ""

    def __str__(self) -> str:
        who = self.name or f"unknown key {self.key_id:.16}"
        return f"{who}: {self.problem}" if self.problem else who


@dataclass(frozen=True, slots=True)
class SignatureVerdict:
    """What the signatures of a bundle are worth for a scope; `problem` is why not enough, "" where they are.

    `release` is what was signed, "" where nothing was or it says none.
    """

    scope: str
    release: str
    signatures: tuple[SignedBy, ...]
    problem: str

    @property
    def is_allowed(self) -> bool:
        """Whether the bundle may be used with this scope."""
        return not self.problem

    @property
    def trusted_release(self) -> str:
        """The release that a trusted key signed, "" where none did."""
        return self.release if any(not one.problem for one in self.signatures) else ""


class Signed(NamedTuple):
    """What is signed of a bundle: its release ("" where none is said), and the ids of all keys."""

    release: str
    key_ids: tuple[str, ...]

    def __str__(self) -> str:
        return signed_text(self.release, (f"{one:.16}" for one in self.key_ids))


def signed_text(release: str, signers: Iterable[str]) -> str:
    """Returns in words who signed a bundle as which release."""
    return f"signed{f' as release {release}' if release else ''} by {', '.join(signers)}"


UNSIGNED = Signed("", ())


def signed_as(bundle: Bundle) -> Signed:
    """Returns what the signatures of a bundle say, whoever made them.

    Raises:
        BundleError: what is signed is not what this bundle is.
    """
    envelope, release = signed_statement(bundle)
    return Signed(release, () if envelope is None else tuple(one.key_id for one in envelope.signatures))


def holds_code(manifest: Manifest) -> bool:
    """Returns whether a bundle holds anything that only a trusted key may vouch for."""
    variants = (variant for submodel in all_submodels(manifest) for variant in submodel.variants)
    return any(variant.native_code for variant in variants)


def check_signatures(
    bundle: Bundle, store: TrustStore, scope: str, *, at_least: int = 0, today: dt.date | None = None
) -> SignatureVerdict:
    """Returns what the signatures of a bundle are worth for a scope, where `store` is what this machine trusts.

    `at_least` so many are needed, whatever the store says.

    Raises:
        BundleError: the member `signature` is there and is none of this bundle.
    """
    day = today or dt.datetime.now(dt.UTC).date()
    envelope, release = signed_statement(bundle)
    found = () if envelope is None else tuple(signed_by(envelope, store, scope, day))
    num_good, needed = sum(not one.problem for one in found), max(store.needed[scope], at_least)
    verdict = SignatureVerdict(scope, release, found, _too_few(found, num_good, needed) if num_good < needed else "")
    model = bundle.manifest.model_name
    if verdict.is_allowed and model in store.floors:
        return replace(verdict, problem=_below(store.floors[model], model, verdict.trusted_release))
    return verdict


def signed_statement(bundle: Bundle) -> tuple[Envelope | None, str]:
    """Returns the envelope of the statement about a bundle and the release that it says; None where it is not signed.

    Raises:
        BundleError: what is signed is not what this bundle is.
    """
    text = bundle.signature
    if not text:
        return None, ""
    try:
        envelopes = decode_envelopes(text)
        release = release_of(envelopes[0].payload)
        if [one.payload for one in envelopes] != list(statements(bundle, release)):
            raise BundleError("the signature is for another bundle", hint="sign it again: nndeploy sign")
    except BundleError as err:
        err.within(f"{bundle.path}: signature")
        raise
    return envelopes[0], release


def statements(bundle: Bundle, release: str) -> tuple[bytes, bytes]:
    """Returns the payloads that are signed of a bundle: what it is, and how it was made."""
    return (
        bundle_statement(bundle.manifest, bundle.manifest_text, release),
        provenance_statement(bundle.manifest, bundle.manifest_text),
    )


def signed_by(envelope: Envelope, store: TrustStore, scope: str, day: dt.date) -> Iterator[SignedBy]:
    """Yields whose signatures an envelope has, and what is wrong with each for a scope on a day."""
    for one in envelope.signatures:
        key = store.keys.get(one.key_id)
        if one.key_id in store.revoked:
            yield SignedBy(one.key_id, "" if key is None else key.name, "the key was revoked")
        elif key is None:
            yield SignedBy(one.key_id, "", "the key is not trusted here")
        elif not key.public.is_signature(one.value, envelope.signed):
            yield SignedBy(one.key_id, key.name, "the signature is not of this key")
        else:
            yield SignedBy(one.key_id, key.name, key.why_not(scope, day))


def _too_few(found: tuple[SignedBy, ...], num_good: int, needed: int) -> str:
    if not found:
        return "it is not signed"
    refused = "; ".join(str(one) for one in found if one.problem)
    return f"signed by {num_good} of the {needed} trusted keys required" + (f" ({refused})" if refused else "")


def _below(least: str, model: str, release: str) -> str:
    if not release:
        return f"no trusted key says which release of {model!r:.60} it is, and none below {least} is allowed"
    if release_numbers(release) < release_numbers(least):
        return f"it is release {release} of {model!r:.60}, and none below {least} is allowed"
    return ""
