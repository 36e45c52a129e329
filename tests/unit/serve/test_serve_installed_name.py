# SPDX-License-Identifier: Apache-2.0
"""A name that is followed: the bundle that becomes current answers once it is right, and a wrong one never does."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nndeploy.errors import UsageError
from nndeploy.installed.bundle_store import BundleStore, Installed
from nndeploy.serve.installed_name import InstalledName, version_at
from nndeploy.serve.options import ServeOptions
from nndeploy.serve.served_bundle import ServedBundle
from nndeploy.serve.served_model import ServedModel

ONE = {"x": np.ones((1, 3), np.float32)}


class Box:
    """A store with the name `faces`, and programs for the bundles in it."""

    def __init__(self, path: Path) -> None:
        self.store = BundleStore(path)
        self.programs: dict[str, Any] = {}
        self.said: list[str] = []

    def install(self, letter: str, program: Any, release: str = "") -> Path:
        """Makes a bundle current, whose SHA-256 is a letter 64 times."""
        self.programs[letter * 64] = program
        with self.store.changing("faces") as incoming:
            incoming.write_bytes(b"")
            self.store.take("faces", incoming, Installed(letter * 64, release, "test"), 0)
        return self.store.bundle("faces")

    def model(self, path: Path) -> ServedModel:
        options = ServeOptions()
        model = ServedModel(
            "faces",
            options,
            lambda at: ServedBundle(self.programs[at.stem], "faces", options, self.said.append),
            Counter(),
        )
        model.open(path, version_at(path))
        return model


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path / "store")


def answered(model: ServedModel) -> str:
    return model.submit(dict(ONE)).result(10).version


def test_it_goes_over_to_what_becomes_current(box, fake_program) -> None:
    path = box.install("a", fake_program())
    model = box.model(path)
    name = InstalledName(model, path, box.said.append)
    name.look()
    assert (answered(model), box.said) == ("a" * 12, [])
    box.install("b", fake_program(), release="1.2")
    name.look()
    name.look()
    assert (answered(model), box.said) == ("1.2", ["faces@ switched to 1.2"])
    assert box.programs["a" * 64].is_closed
    model.close(5.0)


def test_one_that_is_wrong_is_told_once_and_the_next_one_is_taken(box, fake_program) -> None:
    path = box.install("a", fake_program())
    model = box.model(path)
    name = InstalledName(model, path, box.said.append)
    box.install("b", fake_program(lambda x: {"y": x}))
    name.look()
    name.look()
    assert answered(model) == "a" * 12
    assert len(box.said) == 1
    assert "faces@ was not switched" in box.said[0]
    assert "goldens" in box.said[0]
    box.install("c", fake_program())
    name.look()
    assert answered(model) == "c" * 12
    model.close(5.0)


def test_what_became_current_before_it_looked_is_found(box, fake_program) -> None:
    path = box.install("a", fake_program())
    model = box.model(path)
    box.install("b", fake_program())
    InstalledName(model, path, box.said.append).look()
    assert answered(model) == "b" * 12
    model.close(5.0)


def test_a_thread_of_its_own_looks(box, fake_program, until) -> None:
    path = box.install("a", fake_program())
    model = box.model(path)
    name = InstalledName(model, path, box.said.append)
    name.start()
    box.install("b", fake_program())
    until(lambda: answered(model) == "b" * 12)
    name.close()
    model.close(5.0)


def test_only_installed_bundles_are_followed(box, fake_program, tmp_path) -> None:
    model = box.model(box.install("a", fake_program()))
    with pytest.raises(UsageError, match=r"only installed bundles are followed \(hint: name it NAME@\)"):
        InstalledName(model, tmp_path / "a.nnd", box.said.append)
    assert version_at(tmp_path / "a.nnd") == "1"
    model.close(5.0)
