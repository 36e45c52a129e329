# SPDX-License-Identifier: Apache-2.0
"""A PKCS#11 token signs: SoftHSM's, where Debian's package softhsm2 is installed."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from nndeploy.bundle.reader import open_bundle
from nndeploy.cli.main import run_command
from nndeploy.errors import UnavailableError
from nndeploy.trust.public_key import PublicKey
from nndeploy.trust.signatures import check_signatures
from nndeploy.trust.signers import TokenSigner
from nndeploy.trust.trust_store import TrustedKey, TrustStore

LIBRARY = Path("/usr/lib/softhsm/libsofthsm2.so")
TOKEN, LABEL, PIN = "farm", "release", "1234"

pkcs11: Any = pytest.importorskip("pkcs11", reason="python-pkcs11 is not installed")
pytestmark = pytest.mark.skipif(
    not LIBRARY.exists() or shutil.which("softhsm2-util") is None, reason="softhsm2 is not installed"
)


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> PublicKey:
    """A token with a key of ed25519; its public half."""
    folder = tmp_path_factory.mktemp("softhsm")
    (folder / "tokens").mkdir()
    (folder / "softhsm2.conf").write_text(f"directories.tokendir = {folder / 'tokens'}\n")
    patch = pytest.MonkeyPatch()
    patch.setenv("SOFTHSM2_CONF", str(folder / "softhsm2.conf"))
    command = ["softhsm2-util", "--init-token", "--free", "--label", TOKEN, "--pin", PIN, "--so-pin", PIN]
    subprocess.run(command, check=True, capture_output=True)
    library = pkcs11.lib(str(LIBRARY))
    library.reinitialize()
    with library.get_token(token_label=TOKEN).open(user_pin=PIN, rw=True) as session:
        curve = bytes.fromhex("130c656477617264733235353139")  # PrintableString "edwards25519"
        parameters = session.create_domain_parameters(
            pkcs11.KeyType.EC_EDWARDS, {pkcs11.Attribute.EC_PARAMS: curve}, local=True
        )
        made, _ = parameters.generate_keypair(
            mechanism=pkcs11.Mechanism.EC_EDWARDS_KEY_PAIR_GEN, label=LABEL, store=True
        )
        point = bytes(made[pkcs11.Attribute.EC_POINT])
    yield PublicKey(point[-32:])
    patch.undo()


def test_a_token_signs_a_bundle(public: PublicKey, bundle: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    (tmp_path / "farm.pub").write_text(public.pem)
    monkeypatch.setenv("NNDEPLOY_PKCS11_PIN", PIN)
    token = ["--pkcs11", str(LIBRARY), "--token", TOKEN, "--label", LABEL, "--public-key", str(tmp_path / "farm.pub")]
    assert run_command(["sign", str(bundle), *token, "--release", "1.0"]) == 0
    with open_bundle(bundle) as signed:
        store = TrustStore({public.id: TrustedKey(public, "farm", frozenset(("code",)))})
        assert check_signatures(signed, store, "code", at_least=1).is_allowed
    monkeypatch.delenv("NNDEPLOY_PKCS11_PIN")
    assert run_command(["sign", str(bundle), *token]) == 66
    capsys.readouterr()


@pytest.mark.parametrize(
    ("token", "label", "pin"), [("none", LABEL, PIN), (TOKEN, "none", PIN), (TOKEN, LABEL, "9999")]
)
def test_a_token_that_does_not_sign_says_why(public: PublicKey, token: str, label: str, pin: str) -> None:
    with pytest.raises(UnavailableError, match="the token does not sign"):
        TokenSigner(public, str(LIBRARY), token, label, pin).sign(b"message")


def test_a_library_that_is_none_is_one_error(public: PublicKey, tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="the token does not sign"):
        TokenSigner(public, str(tmp_path / "none.so"), TOKEN, LABEL, PIN).sign(b"message")
