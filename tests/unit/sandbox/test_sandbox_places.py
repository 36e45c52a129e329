# SPDX-License-Identifier: Apache-2.0
"""A folder that a user names is opened, but never the home, the temporary files of others, or the signing keys."""

import tempfile
from pathlib import Path

import pytest

from nndeploy.sandbox import places


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a key, hidden files, a model, and folders; temporary files lie elsewhere."""
    home = tmp_path / "home"
    for folder in (".config/nndeploy", ".ssh", "models/weights", "documents"):
        (home / folder).mkdir(parents=True)
    for file in (".config/nndeploy/key", ".ssh/x", ".netrc", "m.onnx", "m.data", "models/m.onnx", "documents/letter"):
        (home / file).write_text("x")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return home


def test_the_folder_of_a_model_is_opened_with_all_that_is_below(home: Path) -> None:
    model = home / "models/m.onnx"
    assert list(places.named(str(model))) == [str(model), str(home / "models")]
    assert list(places.named(str(home / "models"))) == [str(home / "models")]


@pytest.mark.parametrize("key", ["farm.key", "keys/farm.key"])
def test_a_private_key_beside_a_model_is_not_opened(home: Path, key: str) -> None:
    folder = home / "models"
    (folder / "keys").mkdir()
    (folder / "keys/farm.pub").touch()
    (folder / "labels.key").write_text("of a map, not of a lock")
    (folder / key).write_text("-----BEGIN PRIVATE KEY-----")
    opened = list(places.named(str(folder / "m.onnx")))
    assert {str(folder / name) for name in ("m.onnx", "weights", "labels.key")} < set(opened)
    assert not any((folder / key).is_relative_to(path) for path in opened)
    (home / "own.key").write_text("-----BEGIN PRIVATE KEY-----")
    assert set(places.named(str(home))) == {str(home / "m.onnx"), str(home / "m.data")}


@pytest.mark.parametrize("named", ["", "m.onnx"])
def test_of_the_home_only_the_files_are_opened_that_are_not_hidden(home: Path, named: str) -> None:
    assert set(places.named(str(home / named))) == {str(home / "m.onnx"), str(home / "m.data")}


def test_of_what_holds_the_home_or_temporary_files_only_files_are_opened(home: Path, tmp_path: Path) -> None:
    (tmp_path / "beside.onnx").touch()
    (tmp_path / "temporary").mkdir()
    (tmp_path / "temporary/job").mkdir()
    assert list(places.named(str(tmp_path))) == [str(tmp_path / "beside.onnx")]
    assert list(places.named(str(tmp_path / "temporary"))) == []


def test_where_a_link_leads_is_opened_too(home: Path, tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    link = tmp_path / "links/m.onnx"
    link.symlink_to(home / "models/m.onnx")
    model = home / "models/m.onnx"
    assert list(places.named(str(link))) == [str(link), str(link.parent), str(model), str(model.parent)]


def test_the_folder_of_the_keys_is_never_opened(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = home / ".config/nndeploy"
    assert list(places.beside(str(keys))) == []
    assert list(places.beside(str(home / ".config"))) == []
    assert not any(keys.is_relative_to(path) for path in places.programs())
    apart = tmp_path / "apart"
    (apart / "nndeploy").mkdir(parents=True)
    (apart / "other").mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(apart))
    assert list(places.beside(str(apart))) == []
    monkeypatch.setattr(places, "SYSTEM", (str(apart),))
    assert str(apart / "other") in set(places.programs())
    assert not {str(apart), str(apart / "nndeploy")} & set(places.programs())
