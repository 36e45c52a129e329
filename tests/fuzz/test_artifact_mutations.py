# SPDX-License-Identifier: Apache-2.0
"""Artifacts that a registry damaged or an attacker wrote: each is the bundle, or one error, and nothing between."""

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nndeploy.errors import BundleError, NndeployError
from nndeploy.registry.artifact import BLOCK_BYTES, Artifact, ArtifactMember, Blob, decode_artifact, encode_artifact

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "unit" / "registry")]

from registry_server import RegistryServer, digest_of
from test_bundle_contents import damaged_bytes, damaged_tree
from weighty_bundles import QUICK, write_weights

SEED = encode_artifact(Artifact(
    (ArtifactMember("manifest.json", (Blob("a" * 64, 100),)), ArtifactMember("report.json", (Blob("b" * 64, 7),)),
     ArtifactMember("w/0.bin", tuple(Blob(f"{n:064x}", BLOCK_BYTES) for n in range(3)))),
    "d" * 64,
))  # fmt: skip
NUM_MANIFESTS, NUM_PULLS = 1500, 90


def mutants(seed: bytes, rng: random.Random, count: int) -> Iterator[bytes]:
    for number in range(count):
        if number % 2:
            yield damaged_bytes(seed, rng)
        else:
            yield json.dumps(damaged_tree(json.loads(seed), rng)).encode()


def test_a_mutated_manifest_is_an_artifact_or_one_error() -> None:
    rng, taken = random.Random(5), 0  # noqa: S311
    for data in mutants(SEED, rng, NUM_MANIFESTS):
        try:
            found = decode_artifact(data)
        except BundleError:
            continue
        taken += 1
        assert decode_artifact(encode_artifact(found)) == found
    assert 0 < taken < NUM_MANIFESTS / 3


def test_what_is_pulled_from_a_mutated_registry_is_the_bundle_or_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("requests", reason="the extra `registry` is not installed")
    from nndeploy.registry import connection
    from nndeploy.registry.pull import pull
    from nndeploy.registry.push import push

    monkeypatch.setattr(connection, "FIRST_WAIT_SECONDS", 0.0)
    whole = write_weights(tmp_path / "m.nnd", (1, 2), size=5000)
    out = tmp_path / "box" / "m.nnd"
    out.parent.mkdir()
    rng, outcomes = random.Random(6), set[int]()  # noqa: S311
    with RegistryServer() as registry:
        push(tmp_path / "m.nnd", registry.reference(), options=QUICK)
        manifest, blobs = registry.manifests["1"], dict(registry.blobs)
        inner = next(data for data in blobs.values() if data.startswith(b'{"aliases"'))
        for number in range(NUM_PULLS):
            registry.blobs = dict(blobs)
            match number % 3:
                case 0:  # the artifact
                    (registry.manifests["1"],) = mutants(manifest, rng, 1)
                case 1:  # a blob under its old digest
                    registry.manifests["1"] = manifest
                    digest = rng.choice(sorted(name for name, data in blobs.items() if len(data) > 100))
                    registry.blobs[digest] = damaged_bytes(blobs[digest], rng)
                case _:  # the bundle's own manifest, with its digest put right
                    changed = damaged_bytes(inner, rng)
                    registry.blobs[digest_of(changed)] = changed
                    tree = json.loads(manifest)
                    layer = next(one for one in tree["layers"] if one["digest"] == digest_of(inner))
                    layer |= {"digest": digest_of(changed), "size": len(changed)}
                    registry.manifests["1"] = json.dumps(tree).encode()
            error = None
            try:
                pull(registry.reference(), out, options=QUICK)
            except NndeployError as err:
                error = err
            assert (out.read_bytes() if out.exists() else None) == (None if error else whole)
            outcomes.add(0 if error is None else error.exit_code)
            out.unlink(missing_ok=True)
    assert {0, 65} <= outcomes <= {0, 65, 74}
    assert [path.name for path in out.parent.iterdir() if not path.name.startswith(".nndeploy-pull-")] == []
