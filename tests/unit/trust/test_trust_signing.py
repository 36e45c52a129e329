# SPDX-License-Identifier: Apache-2.0
"""Signing: who may, what stays, and that a signature is of one bundle alone."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from nndeploy.bundle.reader import open_bundle
from nndeploy.errors import BundleError, CannotCreateError, DataError, MissingInputError, PolicyError, UnavailableError
from nndeploy.trust.public_key import PublicKey, public_key_from_pem, read_public_key
from nndeploy.trust.signatures import check_signatures, signed_statement
from nndeploy.trust.signers import CommandSigner, FileSigner, new_key, read_key
from nndeploy.trust.signing import machine_key, machine_key_path, sign_bundle
from nndeploy.trust.trust_store import TrustedKey, TrustStore, change_store, user_store

# RFC 8032, 7.1, TEST 2
PUBLIC = PublicKey(bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"))
SIGNATURE = bytes.fromhex(
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
    "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
)


def trusting(*signers: FileSigner) -> TrustStore:
    keys = {one.public.id: TrustedKey(one.public, f"k{i}", frozenset(("code",))) for i, one in enumerate(signers)}
    return TrustStore(keys)


def test_the_mathematics_are_those_of_rfc_8032() -> None:
    assert PUBLIC.is_signature(SIGNATURE, b"\x72")
    assert not PUBLIC.is_signature(SIGNATURE, b"\x73")
    assert not PUBLIC.is_signature(SIGNATURE[:-1], b"\x72")
    assert not PublicKey(b"\xff" * 32).is_signature(SIGNATURE, b"\x72")


def test_a_key_is_for_its_owner_alone_and_never_overwritten(tmp_path: Path) -> None:
    made = new_key(tmp_path / "a.key")
    assert (tmp_path / "a.key").stat().st_mode & 0o777 == 0o600
    assert read_key(tmp_path / "a.key").public == made.public
    with pytest.raises(CannotCreateError, match="there already"):
        new_key(tmp_path / "a.key")
    (tmp_path / "a.key").chmod(0o640)
    with pytest.raises(PolicyError, match="other users"):
        read_key(tmp_path / "a.key")
    assert [one.name for one in tmp_path.iterdir()] == ["a.key"]


def test_a_key_of_this_machine_that_was_revoked_signs_nothing(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    made = machine_key().public
    change_store(user_store(), lambda old: replace(old, revoked=frozenset((made.id,))))
    with pytest.raises(PolicyError, match="revoked here"):
        machine_key()
    machine_key_path().unlink()
    assert machine_key().public != made


def test_what_is_no_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.key").write_bytes(b"no key")  # which others may read, as they may /etc/passwd
    with pytest.raises(DataError, match="no private key"):
        read_key(tmp_path / "a.key")
    with pytest.raises(MissingInputError):
        read_key(tmp_path / "b.key")
    new_key(tmp_path / "c.key")
    with pytest.raises(DataError, match="a private key"):
        read_public_key(tmp_path / "c.key")
    rsa = PUBLIC.pem.replace("MCow", "MCov")
    with pytest.raises(DataError, match="ed25519"):
        public_key_from_pem(rsa)
    assert public_key_from_pem(PUBLIC.pem) == PUBLIC


def test_signatures_add_up_and_members_keep_their_bytes(bundle: Path, tmp_path: Path) -> None:
    one, two = new_key(tmp_path / "1.key"), new_key(tmp_path / "2.key")
    with open_bundle(bundle) as before:
        members = {name: bytes(before.stored(name)) for name in before.manifest.members}
    sign_bundle(bundle, [one], "1.4.0")
    alone = bundle.read_bytes()
    signed = sign_bundle(bundle, [two])
    assert signed.release == "1.4.0"
    assert set(signed.key_ids) == {one.public.id, two.public.id}
    with open_bundle(bundle) as after:
        assert {name: bytes(after.stored(name)) for name in after.manifest.members} == members
        verdict = check_signatures(after, trusting(one, two), "code", at_least=2)
        assert (verdict.problem, verdict.release) == ("", "1.4.0")
        assert "1 of the 2" in check_signatures(after, trusting(one), "code", at_least=2).problem
    sign_bundle(bundle, [one], "1.4.0")
    assert bundle.read_bytes() != alone  # the other's signature stays
    sign_bundle(bundle, [one], "1.5.0")
    with open_bundle(bundle) as after:
        assert [by.key_id for by in check_signatures(after, trusting(one), "code").signatures] == [one.public.id]


def test_the_same_key_gives_the_same_bytes(bundle: Path, tmp_path: Path) -> None:
    key, unsigned = new_key(tmp_path / "1.key"), bundle.read_bytes()
    sign_bundle(bundle, [key], "1")
    first = bundle.read_bytes()
    bundle.write_bytes(unsigned)
    sign_bundle(bundle, [key], "1")
    assert bundle.read_bytes() == first


def test_a_signature_of_another_bundle_is_refused(bundle: Path, tmp_path: Path, make_bundle) -> None:
    key = new_key(tmp_path / "1.key")
    sign_bundle(bundle, [key], "1")
    with open_bundle(bundle) as signed:
        text = signed.signature
    with open_bundle(make_bundle("other.nnd", b"other")) as found:
        found.signature = text
        with pytest.raises(BundleError, match="another bundle"):
            signed_statement(found)


def command(tmp_path: Path, key: Path) -> str:
    """Returns a command that signs with openssl, as an operator might write it."""
    script = tmp_path / "sign.sh"
    script.write_text(
        f"cat > {tmp_path}/message\n"
        f"openssl pkeyutl -sign -rawin -inkey {key} -in {tmp_path}/message -out {tmp_path}/out && cat {tmp_path}/out\n"
    )
    return f"sh {script}"


def test_a_command_signs_as_the_key_does(bundle: Path, tmp_path: Path) -> None:
    key = new_key(tmp_path / "1.key")
    signer = CommandSigner(key.public, command(tmp_path, tmp_path / "1.key"))
    assert signer.sign(b"message") == key.sign(b"message")
    sign_bundle(bundle, [signer], "2")
    with open_bundle(bundle) as signed:
        assert check_signatures(signed, trusting(key), "code").is_allowed


@pytest.mark.parametrize(("code", "reason"), [
    ("import sys; sys.stdout.buffer.write(b'x' * 64)", "not of the key"),
    ("print('short')", "where a signature has 64"),
    ("import sys; sys.exit('the token is locked')", "ended with 1: the token is locked"),
])  # fmt: skip
def test_a_command_that_does_not_sign_changes_nothing(bundle: Path, tmp_path: Path, code: str, reason: str) -> None:
    before = bundle.read_bytes()
    signer = CommandSigner(PUBLIC, f'{sys.executable} -c "{code}"')
    with pytest.raises(UnavailableError, match=reason):
        sign_bundle(bundle, [signer], "2")
    with pytest.raises(UnavailableError, match="cannot be run"):
        sign_bundle(bundle, [CommandSigner(PUBLIC, "no-such-command-at-all")], "2")
    assert bundle.read_bytes() == before


def test_the_id_is_what_openssl_would_call_it(tmp_path: Path) -> None:
    (tmp_path / "a.pub").write_text(PUBLIC.pem)
    line = f"openssl pkey -pubin -in {tmp_path / 'a.pub'} -outform DER | sha256sum"
    found = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True)
    assert found.stdout.split()[0] == PUBLIC.id
