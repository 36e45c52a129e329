# SPDX-License-Identifier: Apache-2.0
"""`nndeploy-run --verify-key`: the same codes and words as `nndeploy` with that key as the only one that is trusted."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from nndeploy_kernels import build_runtime

from nndeploy.bundle.container import encode_container, parse_container
from nndeploy.bundle.reader import Bundle
from nndeploy.cli.main import run_command
from nndeploy.files.strict_json import canonical_json

Change = Callable[[bytes], bytes]


@pytest.fixture(scope="session")
def verifier() -> Path:
    """The program that checks signatures by the system's libcrypto."""
    if shutil.which("cc") is None or not any(Path("/usr/include").glob("**/openssl/evp.h")):
        pytest.skip("no C compiler, or no libssl-dev")
    return build_runtime.build_verifying_runner()


@pytest.fixture(scope="module")
def box(digits, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with farm.key and other.key, and a bundle that farm.key signed."""
    folder = tmp_path_factory.mktemp("box")
    shutil.copyfile(digits, folder / "plain.nnd")
    shutil.copyfile(digits, folder / "signed.nnd")
    for name in ("farm", "other"):
        assert run_command(["key", "new", str(folder / name)]) == 0
    signed = ["sign", str(folder / "signed.nnd"), "--key", str(folder / "farm.key"), "--release", "1.4.0"]
    assert run_command(signed) == 0
    return folder


def with_signature(bundle: Path, out: Path, change: Change) -> Path:
    """Writes a bundle with another member `signature`."""
    with Bundle(bundle.read_bytes(), bundle) as opened:
        members = {name: bytes(opened.stored(name)) for name in opened.manifest.members}
        members |= {"manifest.json": bytes(opened.manifest_text), "signature": change(opened.signature)}
    out.write_bytes(b"".join(encode_container(members)))
    return out


def told(command: list[object]) -> tuple[int, str]:
    """Returns the exit code of a command, and its line without its name."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert len(done.stderr.splitlines()) == (done.returncode != 0)
    return done.returncode, done.stderr.partition(": ")[2]


def by_both(
    nndeploy_command: Callable[..., "subprocess.CompletedProcess[str]"],
    verifier: Path, bundle: Path, key: Path, monkeypatch: pytest.MonkeyPatch,
) -> list[tuple[int, str]]:  # fmt: skip
    """Returns what nndeploy, which trusts a key alone, and nndeploy-run say of a bundle."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(bundle.parent / f"trust-{bundle.stem}-{key.stem}"))
    trusted = nndeploy_command("key", "trust", key, "--scope", "code")
    done = trusted if trusted.returncode else nndeploy_command("verify", bundle, "--signatures", "--no-run")
    assert len(done.stderr.splitlines()) == (done.returncode != 0)
    python = done.returncode, done.stderr.partition(": ")[2]
    return [python, told([verifier, bundle, "--verify-key", key, "--info"])]


def test_a_bundle_that_the_key_signed_runs(verifier, box) -> None:
    command = [verifier, box / "signed.nnd", "--verify-key", box / "farm.pub"]
    assert told([*command, "--info"]) == (0, "")
    assert told([*command, "--verify"]) == (0, "")


@pytest.mark.parametrize(
    ("bundle", "key", "code"),
    [
        ("signed.nnd", "farm.pub", 0), ("signed.nnd", "other.pub", 77), ("plain.nnd", "farm.pub", 77),
        ("signed.nnd", "farm.key", 65), ("signed.nnd", "nowhere.pub", 66), ("signed.nnd", "signed.nnd", 65),
        ("signed.nnd", "rsa.pub", 65), ("signed.nnd", "text.pub", 65), ("signed.nnd", "blanks.pub", 0),
    ],
)  # fmt: skip
def test_a_key_is_judged_as_by_nndeploy(nndeploy_command, verifier, box, monkeypatch, bundle, key, code) -> None:
    (box / "text.pub").write_text("no key\nat\nall\n")
    (box / "blanks.pub").write_text("\n" + (box / "farm.pub").read_text().replace("\n", " \r\n") + "\n")
    if key == "rsa.pub":
        openssl = shutil.which("openssl") or pytest.skip("no openssl")
        subprocess.run([openssl, "genrsa", "-out", box / "rsa.key"], check=True, capture_output=True)
        made = [openssl, "rsa", "-in", box / "rsa.key", "-pubout", "-out", box / "rsa.pub"]
        subprocess.run(made, check=True, capture_output=True)
    python, found = by_both(nndeploy_command, verifier, box / bundle, box / key, monkeypatch)
    assert found == python
    assert found[0] == code


def changed_value(line: bytes) -> bytes:
    """Returns an envelope with another signature of the same key."""
    tree = json.loads(line)
    value = tree["signatures"][0]["sig"]
    tree["signatures"][0]["sig"] = ("B" if value[0] == "A" else "A") + value[1:]
    return canonical_json(tree)


def short_value(line: bytes) -> bytes:
    tree = json.loads(line)
    tree["signatures"][0]["sig"] = tree["signatures"][0]["sig"][:-4]
    return canonical_json(tree)


def other_release(line: bytes) -> bytes:
    return line.replace(b'"payload":"', b'"payload":"AAAA')


def on_line(number: int, change: Change) -> Change:
    """Returns what changes a line of the member alone."""

    def on_text(text: bytes) -> bytes:
        lines = text.split(b"\n")
        lines[number] = change(lines[number])
        return b"\n".join(lines)

    return on_text


DAMAGED: dict[str, tuple[Change, int]] = {
    "another value": (on_line(0, changed_value), 77), "a value too short": (on_line(0, short_value), 65),
    "no statement": (on_line(0, other_release), 65), "no line": (lambda _: b"\n", 65), "cut": (lambda t: t[:-1], 65),
    "one line": (lambda text: text[: text.index(b"\n") + 1], 65), "twice": (lambda text: text + text, 65),
    "in the other order": (lambda text: b"\n".join([*reversed(text.split(b"\n")[:2]), b""]), 65),
    "a blank": (lambda text: text.replace(b":", b": ", 1), 65), "empty": (lambda _: b"", 77),
    "no base64": (lambda text: text.replace(b'"payload":"', b'"payload":"?', 1), 65),
    "of another line": (on_line(1, lambda line: line.replace(b'"payload":"ey', b'"payload":"ez', 1)), 65),
}  # fmt: skip
WORDS_OF_PYTHON_ALONE = {"no line": "what JSON lacks", "no base64": "what the field holds", "no statement": "the place"}
"""Damages that both refuse with one code, and of which Python says more: what is shown of the field, or where the text
ends."""


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_signature_is_refused_as_by_nndeploy(
    nndeploy_command, verifier, box, tmp_path, monkeypatch, damage
) -> None:
    change, code = DAMAGED[damage]
    bundle = with_signature(box / "signed.nnd", tmp_path / "m.nnd", change)
    python, found = by_both(nndeploy_command, verifier, bundle, box / "farm.pub", monkeypatch)
    assert (python[0], found[0]) == (code, code)
    assert found[1] == python[1] or damage in WORDS_OF_PYTHON_ALONE, (found, python)


@pytest.mark.parametrize("member", ["manifest.json", "report.json", "submodels/s0/v0-native/plan.json"])
def test_a_member_that_was_changed_after_it_was_signed_is_refused(verifier, box, tmp_path, member) -> None:
    with Bundle((box / "signed.nnd").read_bytes(), Path("m.nnd")) as opened:
        members = {name: bytes(opened.stored(name)) for name in opened.manifest.members}
        members |= {"manifest.json": bytes(opened.manifest_text), "signature": opened.signature}
    text = bytearray(members[member])
    at = text.index(b"1")
    text[at : at + 1] = b"2"
    (tmp_path / "m.nnd").write_bytes(b"".join(encode_container({**members, member: bytes(text)})))
    assert told([verifier, tmp_path / "m.nnd", "--verify-key", box / "farm.pub", "--verify"])[0] == 65


def test_nothing_of_a_bundle_is_used_before_its_signature_was_checked(verifier, box, tmp_path) -> None:
    """The weights are damaged too, which is not said."""
    data = bytearray((box / "plain.nnd").read_bytes())
    data[parse_container(memoryview(data))["submodels/s0/v0-native/weights.bin"].offset] ^= 255
    (tmp_path / "m.nnd").write_bytes(data)
    assert told([verifier, tmp_path / "m.nnd", "--info"])[0] == 65
    assert told([verifier, tmp_path / "m.nnd", "--info", "--verify-key", box / "farm.pub"])[0] == 77


def test_a_program_without_a_library_says_so(runner, box) -> None:
    code, line = told([runner, box / "signed.nnd", "--verify-key", box / "farm.pub"])
    assert code == 69
    assert "--with-libcrypto" in line
