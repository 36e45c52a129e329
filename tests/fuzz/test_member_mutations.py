# SPDX-License-Identifier: Apache-2.0
"""Bundles of which one member says something else, hashes made right: a share of `make fuzz-bundle-members`.

`NNDEPLOY_FUZZ_MEMBERS` sets the number of mutants.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from nndeploy.bundle import manifest_check

sys.path.append(str(Path(__file__).parent))

from member_mutants import CHANGES, Mutant, Seed, mutant, seeds_in
from member_readers import Surroundings, WrongError, is_taken, surroundings

NUM_MUTANTS = int(os.environ.get("NNDEPLOY_FUZZ_MEMBERS", "600"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("members")


@pytest.fixture(scope="module")
def seeds(folder: Path) -> Mapping[str, Seed]:
    return seeds_in(folder)


@pytest.fixture
def here(folder: Path, seeds: Mapping[str, Seed]) -> Surroundings:
    assert seeds
    return surroundings(folder, "x.nnd")


@pytest.mark.parametrize("kind", sorted({change.kind for change in CHANGES}))
def test_what_is_mutated_is_taken_as_it_is(seeds: Mapping[str, Seed], here: Surroundings, kind: str) -> None:
    for seed in {change.seed for change in CHANGES if change.kind == kind}:
        one = seeds[seed]
        assert is_taken(Mutant(kind, one, one.container({}, one.manifest, one.signature), one.hashes), here)


def test_mutants_are_refused_in_one_line_or_true(seeds: Mapping[str, Seed], here: Surroundings) -> None:
    taken = {is_taken(mutant(seeds, number), here) for number in range(NUM_MUTANTS)}
    assert taken == {True, False}


def test_an_output_that_is_not_what_the_manifest_says_is_found(
    seeds: Mapping[str, Seed], here: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = seeds["compiled"]
    text = one.manifest.replace(b'"name":"y","type":{"dtype":"float32","kind":"tensor","shape":["N",4]}',
                                b'"name":"y","type":{"dtype":"float32","kind":"tensor","shape":["N",5]}')  # fmt: skip
    evil = Mutant("manifest of a compile", one, one.container({}, text, b""), one.hashes)
    assert text != one.manifest
    assert not is_taken(evil, here)
    monkeypatch.setattr(manifest_check, "_may_be_same_shape", lambda *_: True)
    with pytest.raises(WrongError, match=r"y is not float32\[N,5\]"):
        is_taken(evil, here)
