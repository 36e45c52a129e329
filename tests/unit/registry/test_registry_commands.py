# SPDX-License-Identifier: Apache-2.0
"""The commands push and pull: what they print, the answers of the schema, and what they say without the library."""

import json
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from registry_server import RegistryServer, digest_of

import nndeploy
from nndeploy.cli.main import run_command
from nndeploy.registry import kept_blobs

SCHEMA = json.loads(resources.files("nndeploy.cli").joinpath("answers.schema.json").read_text(encoding="utf-8"))


def answer(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert run_command([*map(str, arguments), "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    return document


def test_both_answer_with_the_digest_and_what_travelled(registry, bundle, box, capsys) -> None:
    pushed = answer(capsys, "push", bundle, registry.reference())
    pulled = answer(capsys, "pull", registry.reference(), "-o", box / "m.nnd")
    assert pushed["schema"] == "nndeploy.push.1"
    assert pulled["digest"] == pushed["digest"] == digest_of(registry.manifests["1"])
    assert pulled["reference"] == registry.reference("1", pushed["digest"])
    assert pulled["fetched_bytes"] == pushed["sent_bytes"]
    assert pulled["size_bytes"] == bundle.stat().st_size
    pulled = answer(capsys, "pull", registry.reference(), "-o", box / "n.nnd", "--have", box / "m.nnd")
    assert (pulled["fetched_bytes"], pulled["local_bytes"]) == (0, pushed["sent_bytes"])


def test_people_get_the_reference_first(registry, bundle, box, capsys) -> None:
    assert run_command(["push", str(bundle), registry.reference()]) == 0
    pushed = capsys.readouterr().out.splitlines()
    assert pushed[0] == registry.reference("1", digest_of(registry.manifests["1"]))
    assert pushed[1] == f"{bundle}: 6 members; 901.5 kB were sent, 0 B were there"
    assert run_command(["pull", pushed[0], "-o", str(box / "m.nnd")]) == 0
    assert capsys.readouterr().out.splitlines()[0] == pushed[0]


def test_without_the_library_one_line_says_what_to_install(pushed, bundle, box, monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "requests", None)
    for line in (["push", bundle, pushed.reference()], ["pull", pushed.reference(), "-o", box / "m.nnd"]):
        assert run_command([str(word) for word in line]) == 69
        told = capsys.readouterr().err
        assert "pip install --no-index --find-links FOLDER 'nndeploy-toolchain[registry]'" in told
        assert told.count("\n") == 1
    assert list(box.iterdir()) == []


def test_a_disk_that_is_too_small_is_told_before_anything_large_comes(pushed, box, monkeypatch, capsys) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 1_000_000})())
    assert run_command(["pull", pushed.reference(), "-o", str(box / "m.nnd")]) == 74
    assert "1000000 are free" in capsys.readouterr().err
    assert list(box.iterdir()) == []
    assert len(pushed.fetched) == 1


@pytest.mark.parametrize("name", ["none/m.nnd", "folder"])
def test_an_output_that_cannot_be_is_refused_before_anything_comes(pushed, box, name) -> None:
    (box / "folder").mkdir()
    assert run_command(["pull", pushed.reference(), "-o", str(box / name)]) == 73
    assert pushed.asked == []


def test_a_folder_of_downloads_that_others_may_write_to_is_refused(pushed: RegistryServer, box: Path) -> None:
    kept_blobs.KeptBlobs(box / "m.nnd").path.mkdir(mode=0o777)
    kept_blobs.KeptBlobs(box / "m.nnd").path.chmod(0o777)
    assert run_command(["pull", pushed.reference(), "-o", str(box / "m.nnd")]) == 73


def test_python_has_the_same_doors(registry: RegistryServer, bundle: Path, box: Path) -> None:
    options = nndeploy.RegistryOptions(timeout=5)
    pushed: nndeploy.Pushed = nndeploy.push(bundle, registry.reference(), options=options)
    pulled: nndeploy.Pulled = nndeploy.pull(pushed.reference, box / "m.nnd", options=options)
    assert pulled.reference == pushed.reference
    assert (box / "m.nnd").read_bytes() == bundle.read_bytes()
