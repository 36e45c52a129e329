# SPDX-License-Identifier: Apache-2.0
"""A bundle and signers -> the same bundle with their signatures, in its place.

Members keep their bytes; signatures that are there stay, unless they are of another release. Law: after every failure
and every kill there is the bundle as it was, or as it will be.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from nndeploy.bundle.container import Buffer, encode_container
from nndeploy.bundle.manifest_check import SIGNATURE_NAME
from nndeploy.bundle.manifest_json import MANIFEST_NAME
from nndeploy.bundle.reader import MAX_SIGNATURE_BYTES, open_bundle
from nndeploy.bundle.writer import replace_file
from nndeploy.errors import BundleError, CannotCreateError, MissingInputError, PolicyError
from nndeploy.files.account_folders import config_folder
from nndeploy.trust.envelope import Envelope, Signature, decode_envelopes, encode_envelopes, signed_bytes
from nndeploy.trust.made_here import note_made_here
from nndeploy.trust.public_key import PublicKey
from nndeploy.trust.signatures import Signed, holds_code, signed_statement, statements
from nndeploy.trust.signers import FileSigner, Signer, new_key, read_key
from nndeploy.trust.trust_store import (
    CODE,
    TrustedKey,
    TrustStore,
    change_store,
    make_private_folder,
    read_store,
    trust_store,
    user_store,
)

THIS_MACHINE = "this machine"


def sign_bundle(path: Path, signers: Sequence[Signer], release: str | None = None) -> Signed:
    """Adds a signature of each signer to the bundle at `path`; returns what is signed of it now.

    `release` None keeps the release that is signed already.

    Raises:
        MissingInputError, BundleError, InputOutputError: it cannot be read, or is no bundle.
        CannotCreateError: it cannot be replaced.
        UnavailableError: a signer does not sign.
    """
    with open_bundle(path) as bundle:
        bundle.verify()
        before = signed_statement(bundle)[1]
        said = before if release is None else release
        kept = decode_envelopes(bundle.signature) if bundle.signature and said == before else ()
        payloads = statements(bundle, said)
        envelopes = [
            _signed(payload, signers, kept[number].signatures if kept else ())
            for number, payload in enumerate(payloads)
        ]
        text = encode_envelopes(envelopes)
        if len(text) > MAX_SIGNATURE_BYTES:
            raise BundleError(
                f"its signatures are {len(text)} bytes; at most {MAX_SIGNATURE_BYTES} are allowed", where=str(path)
            )
        members: dict[str, Buffer] = {name: bundle.stored(name) for name in bundle.manifest.members}
        members[MANIFEST_NAME], members[SIGNATURE_NAME] = bundle.manifest_text, text
        replace_file(path, encode_container(members))
    return Signed(said, tuple(one.key_id for one in envelopes[0].signatures))


def _signed(payload: bytes, signers: Sequence[Signer], kept: Sequence[Signature]) -> Envelope:
    message = signed_bytes(payload)
    found = {one.key_id: one for one in kept}
    found |= {one.public.id: Signature(one.public.id, one.sign(message)) for one in signers}
    return Envelope(payload, tuple(found[key_id] for key_id in sorted(found)))


def sign_as_this_machine(path: Path) -> str:
    """Signs a bundle that holds code with this machine's own key; returns what to warn of, "" where nothing is.

    A bundle that holds none is left as it is, so that it has the same bytes wherever it was made, and noted as no
    stranger's. The key is made, and trusted here, when it is first needed.

    Raises:
        MissingInputError, BundleError, InputOutputError: it cannot be read, or is no bundle.
    """
    with open_bundle(path) as bundle:
        if not holds_code(bundle.manifest):
            note_made_here(bundle)
            return ""
    try:
        signer = machine_key()
    except (CannotCreateError, PolicyError) as err:
        return f"the bundle holds code and is not signed: {err.what} ({err.where})"
    sign_bundle(path, [signer])
    return ""


def machine_key_path() -> Path:
    """Returns where the key of this account on this machine is, or will be."""
    return config_folder() / "nndeploy" / "machine.key"


def machine_key() -> FileSigner:
    """Returns the key of this account on this machine, which its store trusts with code; made where there is none.

    Raises:
        CannotCreateError: there is no place for it.
        PolicyError: others may read it, it was revoked here, or the trust store is damaged.
    """
    path = machine_key_path()
    if not path.exists():
        make_private_folder(path.parent)
        with contextlib.suppress(CannotCreateError):  # another compile made it just now; if not, reading tells
            new_key(path)
    try:
        signer = read_key(path)
    except MissingInputError as err:
        raise CannotCreateError("this machine's key cannot be made", where=str(path)) from err
    if signer.public.id in trust_store().revoked:
        raise PolicyError("this machine's key was revoked here", where=str(path), hint=f"rm {path}, and compile again")
    if signer.public.id not in read_store(user_store()).keys:
        trust_key(user_store(), signer.public, THIS_MACHINE)
    return signer


def trust_key(
    store: Path, public: PublicKey, name: str, scopes: frozenset[str] = frozenset((CODE,)), not_after: str = ""
) -> None:
    """Makes a store trust a key, in place of what it says of it.

    Raises:
        PolicyError: the key is revoked there, or the store is damaged.
        CannotCreateError: it cannot be written.
    """

    def trusting(old: TrustStore) -> TrustStore:
        if public.id in old.revoked:
            raise PolicyError(f"the key {public.id:.16} was revoked", where=str(store), hint="make a new key")
        return replace(old, keys={**old.keys, public.id: TrustedKey(public, name, scopes, not_after)})

    change_store(store, trusting)
