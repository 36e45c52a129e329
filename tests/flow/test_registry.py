# SPDX-License-Identifier: Apache-2.0
"""Push and pull as commands, against Debian's docker-registry: TLS, passwords, what travels, what other clients see."""

import contextlib
import hashlib
import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from debian_registry import PASSWORD, USER, DebianRegistry, docker_auth, make_certificate, running
from tests_flow_bundles import write_double

from nndeploy.bundle.reader import open_bundle
from nndeploy.cli.main import run_command
from nndeploy.farm.fleet import Publish
from nndeploy.farm.job import Job
from nndeploy.farm.outcome import Outcome
from nndeploy.farm.publish import Publisher
from nndeploy.registry.kept_blobs import KeptBlobs
from nndeploy.registry.pull import pull
from nndeploy.registry.push import push
from nndeploy.trust.signatures import signed_statement
from nndeploy.trust.signers import new_key

sys.path.append(str(Path(__file__).parents[1] / "unit" / "registry"))

from weighty_bundles import write_weights

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("requests", reason="the extra `registry` is not installed")
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DebianRegistry]:
    with running(tmp_path_factory.mktemp("plain")) as registry:
        yield registry


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DebianRegistry]:
    """One with TLS and a password."""
    with running(tmp_path_factory.mktemp("guarded"), with_tls=True, with_password=True) as registry:
        yield registry


def test_a_bundle_goes_there_and_back(plain, tmp_path, nndeploy_process) -> None:
    whole = write_weights(tmp_path / "m.nnd", (1, 2, 2), plan=b"")
    done = nndeploy_process("push", tmp_path / "m.nnd", plain.reference("back"), "--json")
    assert done.returncode == 0, done.stderr
    pushed = json.loads(done.stdout)
    done = nndeploy_process("pull", plain.reference("back"), "-o", tmp_path / "back.nnd", "--json")
    assert done.returncode == 0, done.stderr
    pulled = json.loads(done.stdout)
    assert (tmp_path / "back.nnd").read_bytes() == whole
    assert pulled["sha256"] == pushed["sha256"] == hashlib.sha256(whole).hexdigest()
    assert pulled["digest"] == pushed["digest"]
    done = nndeploy_process("pull", f"{plain.reference('back')}@{pushed['digest']}", "-o", tmp_path / "again.nnd")
    assert done.stdout.splitlines()[0] == pushed["reference"]
    assert (tmp_path / "again.nnd").read_bytes() == whole


def test_a_batch_publishes_signed_copies(plain, tmp_path) -> None:
    built = write_weights(tmp_path / "m.nnd", (1, 2))
    key = new_key(tmp_path / "farm.key")
    job = Job("m/host", "m", "host", "", "/m.onnx", {}, {}, str(tmp_path / "m.nnd"))
    outcome = Outcome(
        job=job.id, model="m", target="host", variant="", status="ok", sha256=hashlib.sha256(built).hexdigest()
    )
    there = f"oci://127.0.0.1:{plain.port}/fleet/"
    where = Publish(oci=there + "{model}:{target}", sign=str(tmp_path / "farm.key"))
    assert Publisher(where, "fleet.toml").published([job], [outcome]) == [outcome]
    pull(f"{there}m:host", tmp_path / "out.nnd")
    with open_bundle(tmp_path / "out.nnd") as bundle:
        envelope, _ = signed_statement(bundle)
    assert [one.key_id for one in envelope.signatures] == [key.public.id]
    assert (tmp_path / "m.nnd").read_bytes() == built


def test_tls_and_a_password(guarded, tmp_path, nndeploy_process) -> None:
    whole = write_weights(tmp_path / "m.nnd", (1, 2))
    reference, tls = guarded.reference("tls"), ("--ca", guarded.certificate)
    known = ("--username", USER, "--password-stdin")
    done = nndeploy_process("push", tmp_path / "m.nnd", reference, *tls, *known, input=f"{PASSWORD}\n")
    assert done.returncode == 0, done.stderr
    out = ("-o", tmp_path / "out.nnd")
    for arguments, given, code in (
        ((*tls, *known), "wrong\n", 77), (tls, "", 77), ((), "", 69),
        (("--ca", make_certificate(tmp_path), *known), f"{PASSWORD}\n", 69), (("--ca", tmp_path / "none.pem"), "", 66),
        (("--ca", tmp_path / "m.nnd"), "", 65), (known, "", 2), (("--username", USER), "", 2),
        (("--password-stdin",), "x", 2),
    ):  # fmt: skip
        done = nndeploy_process("pull", reference, *out, *arguments, input=given)
        assert done.returncode == code, (arguments, done.stderr)
        assert done.stderr.count("\n") == 1
        assert PASSWORD not in done.stderr + done.stdout
    assert not (tmp_path / "out.nnd").exists()
    (tmp_path / "docker").mkdir()
    kept = {"auths": {f"127.0.0.1:{guarded.port}": {"auth": docker_auth()}}}
    (tmp_path / "docker" / "config.json").write_text(json.dumps(kept))
    done = nndeploy_process("pull", reference, *out, *tls)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.nnd").read_bytes() == whole
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_what_is_not_there_is_a_missing_input(plain, tmp_path, nndeploy_process) -> None:
    done = nndeploy_process("pull", plain.reference("none"), "-o", tmp_path / "m.nnd", "--json")
    assert done.returncode == 66
    assert json.loads(done.stdout)["error"]["code"] == "no-input"
    assert list(tmp_path.iterdir()) == []


def test_half_a_blob_is_gone_on_with(plain, tmp_path) -> None:
    whole = write_weights(tmp_path / "m.nnd", (5,), size=3_000_000)
    push(tmp_path / "m.nnd", plain.reference("half"))
    with zipfile.ZipFile(tmp_path / "m.nnd") as archive:
        weights = archive.read("weights/0.bin")
    with contextlib.suppress(KeyboardInterrupt), KeptBlobs(tmp_path / "out.nnd") as kept:
        with kept.opened(hashlib.sha256(weights).hexdigest()) as file:
            file.write(weights[:2_000_000])
        raise KeyboardInterrupt
    pulled = pull(plain.reference("half"), tmp_path / "out.nnd")
    assert (tmp_path / "out.nnd").read_bytes() == whole
    assert pulled.kept_bytes == 2_000_000
    assert 1_000_000 < pulled.fetched_bytes < 1_010_000


def test_other_clients_of_registries_see_the_members_as_files(plain, tmp_path) -> None:
    client = pytest.importorskip("oras.client", reason="oras is not installed")
    write_weights(tmp_path / "m.nnd", (1, 2), size=5 << 20)
    push(tmp_path / "m.nnd", plain.reference("files"))
    seen = client.OrasClient(insecure=True).pull(
        target=plain.reference("files").removeprefix("oci://"), outdir=str(tmp_path / "files")
    )
    with zipfile.ZipFile(tmp_path / "m.nnd") as archive:
        for name in archive.namelist():
            path = tmp_path / "files" / name
            parts = sorted(path.iterdir()) if path.is_dir() else [path]
            assert b"".join(part.read_bytes() for part in parts) == archive.read(name)
    assert len(seen) == 7  # two of the members are two blocks each


def test_a_name_is_installed_and_updated_from_there(plain, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("NNDEPLOY_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for number, tag in ((1, "one"), (2, "two")):
        write_double(tmp_path / "m.nnd", members={"weights/large": bytes(2 << 20), "note": bytes([number])})
        push(tmp_path / "m.nnd", plain.reference(tag))
        assert run_command(["install", "faces", plain.reference(tag), "--json"]) == 0
    state = json.loads(capsys.readouterr().out.split("\n}\n")[1] + "\n}")
    assert state["current"]["source"].startswith(f"{plain.reference('two')}@sha256:")
    assert Path(state["path"]).read_bytes() == (tmp_path / "m.nnd").read_bytes()
    assert run_command(["install", "faces", plain.reference("none")]) == 66
    assert run_command(["rollback", "faces"]) == 0
    capsys.readouterr()
