# SPDX-License-Identifier: Apache-2.0
"""A file that another process writes comes to its place whole, or not at all; nothing is left beside it."""

import os
from pathlib import Path

import pytest

from nndeploy.errors import CannotCreateError, PolicyError
from nndeploy.files.handed_file import HandedFile


def test_what_was_written_takes_the_place_of_the_old_file(tmp_path: Path) -> None:
    place = tmp_path / "m.nnd"
    place.write_text("old")
    with HandedFile(place) as handed:
        assert Path(handed.folder).parent == tmp_path
        assert Path(handed.folder).stat().st_mode & 0o077 == 0
        handed.path.write_text("new")
        assert place.read_text() == "old"
        handed.deliver()
    assert place.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["m.nnd"]


def test_what_was_not_written_or_not_delivered_changes_nothing(tmp_path: Path) -> None:
    place = tmp_path / "m.nnd"
    place.write_text("old")
    with HandedFile(place) as handed:
        handed.deliver()
        handed.path.write_text("new")
    assert place.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["m.nnd"]


@pytest.mark.parametrize("kind", ["link", "second name", "folder", "another user's rights"])
def test_what_is_no_file_of_its_own_is_refused(tmp_path: Path, kind: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    with HandedFile(tmp_path / "m.nnd") as handed:
        match kind:
            case "link":
                handed.path.symlink_to(secret)
            case "second name":
                os.link(secret, handed.path)
            case "folder":
                handed.path.mkdir()
            case _:
                handed.path.touch()
                handed.path.chmod(0o4755)
        with pytest.raises(PolicyError, match="left something else"):
            handed.deliver()
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


def test_a_folder_that_takes_the_name_of_the_own_one_is_not_looked_into(tmp_path: Path) -> None:
    place = tmp_path / "m.nnd"
    with HandedFile(place) as handed:
        handed.path.write_text("ours")
        Path(handed.folder).rename(tmp_path / "away")
        Path(handed.folder).mkdir()
        handed.path.write_text("another's")
        assert handed.own_path.read_text() == "ours"
        handed.deliver()
    assert place.read_text() == "ours"


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(CannotCreateError, match=r"m\.nnd"):
        HandedFile(tmp_path / "absent/m.nnd")


def test_places_are_told_as_the_user_knows_them(tmp_path: Path) -> None:
    with HandedFile(tmp_path / "m.nnd") as handed:
        assert handed.own_names(f"no space: {handed.path}") == f"no space: {tmp_path / 'm.nnd'}"
