# SPDX-License-Identifier: Apache-2.0
"""Code runs from a bundle only if a trusted key signed it; data runs from anyone."""

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile_bundles import repacked
from tests_flow_bundles import write_double

import nndeploy
from nndeploy.bundle.container import encode_container
from nndeploy.bundle.reader import open_bundle
from nndeploy.cli.main import run_command
from nndeploy.errors import BundleError, NndeployError
from nndeploy.files.account_folders import config_folder
from nndeploy.plugin.interface import CodeFiles
from nndeploy.runtime.verify_bundle import verify
from nndeploy.trust.public_key import read_public_key
from nndeploy.trust.signatures import check_signatures
from nndeploy.trust.trust_store import trust_store

VERIFIER = Path(__file__).resolve().parents[2] / "examples" / "verify" / "verify_signature.py"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with an input, on a machine that trusts nobody yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    np.savez("x.npz", image=np.ones((2, 3), np.float32))
    return tmp_path


@pytest.fixture
def coded(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bundle of ONNX Runtime's, whose files count as code."""
    from nndeploy.plugin.registry import backend

    code = CodeFiles(frozenset(("model.onnx",)), is_needed=True)
    monkeypatch.setattr(type(backend("onnxruntime")), "code_files", lambda _self, _files: code)

    def as_code(manifest: dict[str, Any]) -> None:
        manifest["submodels"][0]["variants"][0]["native_code"] = True

    return repacked(write_double(here / "data.nnd"), here / "m.nnd", as_code)


def commands(bundle: str) -> list[list[str]]:
    return [
        ["run", bundle, "--input", "x.npz", "--output", "y.npz"],
        ["verify", bundle],
        ["bench", bundle, "--iterations", "1"],
    ]


def say(*arguments: str) -> None:
    assert run_command(list(arguments)) == 0


def test_data_runs_from_anyone_and_makes_no_key(here) -> None:
    from nndeploy.trust.signing import sign_as_this_machine

    before = write_double(here / "m.nnd").read_bytes()
    assert sign_as_this_machine(here / "m.nnd") == ""
    assert (here / "m.nnd").read_bytes() == before  # the same bytes wherever it was made
    for command in commands("m.nnd"):
        assert run_command(command) == 0
    assert not config_folder().exists()


def test_code_that_nobody_signed_is_one_line_that_says_what_to_do(coded, capsys) -> None:
    for command in commands("m.nnd"):
        assert run_command(command) == 77
        (line,) = capsys.readouterr().err.splitlines()
        assert "not signed" in line
        assert "only code: s0" in line
        assert "nndeploy key trust" in line
        assert not Path("y.npz").exists()


def test_one_call_may_run_it_and_no_variable_or_file_may_say_so(coded, monkeypatch, capsys) -> None:
    monkeypatch.setenv("NNDEPLOY_ALLOW_UNSIGNED_CODE", "1")
    assert run_command(commands("m.nnd")[0]) == 77
    for command in commands("m.nnd"):
        say(*command, "--allow-unsigned-code")


def test_a_trusted_key_is_enough(coded) -> None:
    say("key", "new", "farm")
    say("sign", "m.nnd", "--key", "farm.key", "--release", "1.4")
    assert run_command(["verify", "m.nnd", "--signatures"]) == 77
    say("key", "trust", "farm.pub")
    for command in [*commands("m.nnd"), ["verify", "m.nnd", "--signatures"]]:
        say(*command)


def test_a_revoked_key_signs_nothing(coded, capsys) -> None:
    say("key", "new", "farm")
    say("sign", "m.nnd", "--key", "farm.key")
    say("key", "trust", "farm.pub")
    say(*commands("m.nnd")[0])
    say("key", "revoke", "farm")
    assert run_command(commands("m.nnd")[0]) == 77
    assert "the key was revoked" in capsys.readouterr().err
    assert run_command(["key", "trust", "farm.pub"]) == 77


def test_two_of_three_keys(coded, capsys) -> None:
    for name in ("a", "b", "c"):
        say("key", "new", name)
        say("key", "trust", f"{name}.pub")
    say("key", "need", "code=2")
    say("sign", "m.nnd", "--key", "b.key")
    capsys.readouterr()
    assert run_command(commands("m.nnd")[0]) == 77
    assert "1 of the 2 trusted keys" in capsys.readouterr().err
    say("sign", "m.nnd", "--key", "c.key")
    say(*commands("m.nnd")[0])


def test_a_release_below_the_floor_is_refused_whatever_it_holds(here, capsys) -> None:
    with open_bundle(write_double(here / "m.nnd")) as bundle:
        model = bundle.manifest.model_name
    say("key", "floor", model, "1.4")
    assert run_command(commands("m.nnd")[0]) == 77
    say("key", "new", "farm")
    say("key", "trust", "farm.pub", "--scope", "data")
    for release, code in (("1.3.9", 77), ("1.4.0", 0), ("1.10", 0)):
        say("sign", "m.nnd", "--key", "farm.key", "--release", release)
        assert run_command(commands("m.nnd")[0]) == code, release
    say("key", "floor", model, "2.0")
    capsys.readouterr()
    assert run_command(["verify", "m.nnd", "--signatures"]) == 77
    (line,) = capsys.readouterr().err.splitlines()
    assert "none below 2.0 is allowed" in line
    assert "key trust" not in line  # it is trusted, and too old


def test_what_this_machine_compiles_with_code_it_signs_and_trusts(coded, here, capsys) -> None:
    from nndeploy.trust.signing import sign_as_this_machine

    assert sign_as_this_machine(coded) == ""
    say("verify", coded.name, "--signatures")
    assert "by this machine" in capsys.readouterr().out
    assert (config_folder() / "nndeploy" / "machine.key").stat().st_mode & 0o777 == 0o600


def corpus(signed: Path, other: Path) -> list[tuple[str, bytes]]:
    """Returns bundles by name: signed ones, and what an attacker could make of them with every checksum right."""
    with open_bundle(signed) as bundle:
        members = {name: bytes(bundle.stored(name)) for name in bundle.manifest.members}
        members |= {"manifest.json": bundle.manifest_text, "signature": bundle.signature}
    with open_bundle(other) as bundle:
        foreign = bundle.signature
    envelope = json.loads(members["signature"].split(b"\n")[0])
    rest = members["signature"].split(b"\n", 1)[1]

    def packed(**changed: bytes | None) -> bytes:
        contents = {k: v for k, v in {**members, **changed}.items() if v is not None}
        return b"".join(encode_container(contents))

    def with_envelope(change: Callable[[dict[str, Any]], object]) -> bytes:
        data = json.loads(json.dumps(envelope))
        change(data)
        line = json.dumps(data, sort_keys=True, separators=(",", ":")).encode()
        return packed(signature=line + b"\n" + rest)

    found = [
        ("signed", packed()),
        ("no signature", packed(signature=None)),
        ("signature of another", packed(signature=foreign)),
        ("other report", packed(**{"report.json": b'{"a":1}'})),
        ("one more member", packed(more=b"1")),
        ("another key's name", with_envelope(lambda data: data["signatures"][0].update(keyid="0" * 64))),
        ("cut signature", packed(signature=members["signature"][:-20])),
    ]
    dice = random.Random(20)  # noqa: S311 - no secret
    for number in range(12):
        name = dice.choice(sorted(members))
        data = bytearray(members[name])
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        found.append((f"bit {number} of {name}", packed(**{name: bytes(data)})))
    return found


def test_an_independent_verifier_agrees_on_the_whole_corpus(here) -> None:
    for name in ("farm", "other"):
        say("key", "new", name)
    say("key", "trust", "farm.pub")
    for path, text in ((here / "m.nnd", 2.0), (here / "b.nnd", 3.0)):
        write_double(path, golden=text)
        say("sign", path.name, "--key", "farm.key", "--release", "1.0")
    verdicts = []
    for name, data in corpus(here / "m.nnd", here / "b.nnd"):
        (here / "c.nnd").write_bytes(data)
        theirs = subprocess.run([sys.executable, VERIFIER, "c.nnd", "farm.pub"], capture_output=True, check=False)
        ours = is_signed(here / "c.nnd")
        assert ours == (theirs.returncode == 0), (name, theirs.stderr)
        verdicts.append(ours)
    assert verdicts == [True] + [False] * (len(verdicts) - 1)


def is_signed(path: Path) -> bool:
    """Returns whether a bundle is whole and signed by a key that is trusted here."""
    try:
        with open_bundle(path) as bundle:
            bundle.verify()
            return check_signatures(bundle, trust_store(), "code", at_least=1).is_allowed
    except NndeployError:
        return False


def test_inspect_says_who_signed(here, capsys) -> None:
    write_double(here / "m.nnd")
    say("inspect", "m.nnd")
    assert "signed" not in capsys.readouterr().out
    say("key", "new", "farm")
    say("sign", "m.nnd", "--key", "farm.key", "--release", "1.0")
    capsys.readouterr()
    say("inspect", "m.nnd")
    assert f"signed as release 1.0 by {read_public_key(Path('farm.pub')).id:.16}" in capsys.readouterr().out


def test_a_bundle_that_takes_the_place_of_the_one_that_is_checked_is_not_called_that(here) -> None:
    say("key", "new", "farm")
    say("key", "trust", "farm.pub")
    write_double(here / "m.nnd")
    say("sign", "m.nnd", "--key", "farm.key")
    write_double(here / "other.nnd", members={"note": b"unsigned"})

    def swapped(path: Path) -> nndeploy.Program:
        (here / "other.nnd").replace(path)
        return nndeploy.load_bundle(path)

    with pytest.raises(BundleError, match="was replaced"):
        verify(here / "m.nnd", signatures=True, load=swapped)
