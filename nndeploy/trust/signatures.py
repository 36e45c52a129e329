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
from nndeploy.trust.trust_store import TrustStore, lifting_command

REVOKED, UNKNOWN = "the key was revoked", "the key is not trusted here"
"""Why a signature counts for nothing."""


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

    `release` is what was signed, "" where nothing was or it says none. `floor` is the name and the least release that
    the bundle is below of, where that is the problem.
    """

    scope: str
    release: str
    signatures: tuple[SignedBy, ...]
    problem: str
    floor: tuple[str, str] | None = None

    @property
    def is_allowed(self) -> bool:
        """Whether the bundle may be used with this scope."""
        return not self.problem

    @property
    def trusted_release(self) -> str:
        """The release that a trusted key signed, "" where none did."""
        return self.release if self.is_signed_by_trusted else ""

    @property
    def is_signed_by_trusted(self) -> bool:
        """Whether at least one trusted key signed."""
        return any(not one.problem for one in self.signatures)

    @property
    def hint(self) -> str:
        """What to do where the bundle may not be used."""
        if not self.signatures:
            return "sign it: nndeploy sign BUNDLE --key KEY.key --release RELEASE"
        unknown = [one.key_id for one in self.signatures if one.problem == UNKNOWN]
        if unknown and not (self.floor and self.is_signed_by_trusted):
            return f"nndeploy key trust KEY.pub, the public key of id {unknown[0]:.16}, if you know whose it is"
        if self.floor:
            model, least = self.floor
            return f"install a signed release from {least} on; {lifting_command(model)} lifts the floor"
        return "nndeploy key list says what is asked for here"

    def held_to(self, model: str, least: str) -> "SignatureVerdict":
        """Returns the verdict for a model or a name of which no release below `least` is allowed."""
        release = self.trusted_release
        if release and release_numbers(release) >= release_numbers(least):
            return self
        what = f"{self.claim}, and none below {least} is allowed of {model!r:.60}"
        return replace(self, problem=what, floor=(model, least))

    @property
    def claim(self) -> str:
        """What the bundle says it is, and who says so."""
        if not self.signatures:
            return "it is not signed"
        if self.trusted_release:
            return f"it is release {self.release}"
        release = f"release {self.release}" if self.release else "no release"
        return f"it is signed as {release} by {', '.join(map(str, self.signatures))}"


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
        return verdict.held_to(model, store.floors[model])
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
            yield SignedBy(one.key_id, "" if key is None else key.name, REVOKED)
        elif key is None:
            yield SignedBy(one.key_id, "", UNKNOWN)
        elif not key.public.is_signature(one.value, envelope.signed):
            yield SignedBy(one.key_id, key.name, "the signature is not of this key")
        else:
            yield SignedBy(one.key_id, key.name, key.why_not(scope, day))


def _too_few(found: tuple[SignedBy, ...], num_good: int, needed: int) -> str:
    if not found:
        return "it is not signed"
    refused = "; ".join(str(one) for one in found if one.problem)
    return f"signed by {num_good} of the {needed} trusted keys required" + (f" ({refused})" if refused else "")
