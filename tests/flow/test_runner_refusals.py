# SPDX-License-Identifier: Apache-2.0
"""What Python refuses nndeploy-run refuses, with the same code and the same words.

Golden bundles, mutants with all hashes made right, bundles of an attacker, manifests and containers that are none. What
is in other words by nature is in `OTHER_WORDS`, with the reason.
"""

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile_bundles import Edit, repacked

import nndeploy
from nndeploy.bundle.container import encode_container, parse_container
from nndeploy.bundle.manifest_json import MANIFEST_NAME
from nndeploy.bundle.reader import Bundle
from nndeploy.errors import NndeployError
from nndeploy.files.strict_json import canonical_json
from nndeploy.runtime.verify_bundle import verify

sys.path.append(str(Path(__file__).parents[1] / "fuzz"))

from member_mutants import Seed, kind_of, mutant, seeds_in

GOLDEN = Path(__file__).parents[1] / "golden"
MUTANTS = 300
OTHER_WORDS = {
    r"manifest\.json: not JSON: ": "where a text is no JSON, Python's reader counts lines, columns and letters",
    r"a malformed plan\.json: ": "Python says which of its operations failed on the document",
    r"plan\.json (has other|says)|input .*plan\.json says|output .*plan\.json says": "C does not say the other shape",
    r"the artifact has no model\.onnx": "a variant of ONNX Runtime: the submodel has none that C runs",
}
"""What Python says, as a regular expression, of which C has other words, or another code, and why."""
WORDS_OF_C = {"not JSON: an escape that means nothing": "Python takes a zero in a text, and C's texts end at one"}
"""What C says of what Python takes, or finds something else wrong with, and why."""
HINTS_OF_PYTHON = re.compile(r" \(hint: (did you mean|known: ).*")
"""Names that are near to a wrong one are looked for by Python alone."""


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Seed]:
    return seeds_in(tmp_path_factory.mktemp("seeds"))


def by_python(bundle: Path) -> tuple[int, str]:
    """Returns the exit code and the words of Python."""
    try:
        with nndeploy.load_bundle(bundle, threads=1):
            return 0, ""
    except NndeployError as err:
        return err.exit_code, f"[{err.code}]: {err}"


def by_c(runner: Path, bundle: Path) -> tuple[int, str]:
    done = subprocess.run([runner, bundle, "--info"], capture_output=True, text=True, check=False)
    assert len(done.stderr.splitlines()) == (done.returncode != 0)
    return done.returncode, done.stderr.rstrip("\n").partition("error")[2]


def differences(runner: Path, bundle: Path) -> str:
    """Returns how the two differ on a bundle, "" where they do not, or by nature."""
    python, c = by_python(bundle), by_c(runner, bundle)
    words = HINTS_OF_PYTHON.sub("", python[1])
    if (python[0], words) == c:
        return ""
    if any(re.search(pattern, words) for pattern in OTHER_WORDS) and c[0] in (65, 69):
        return ""
    if any(said in c[1] for said in WORDS_OF_C) and c[0] == 65:
        return ""
    return f"{python} by Python, {c} by C"


@pytest.mark.parametrize("name", sorted(path.name for path in GOLDEN.glob("*.nnd")))
def test_golden_bundles_of_all_versions_are_read(runner, name) -> None:
    """All of it: they hold no variant of `native`, which is the next that is looked for."""
    code, words = by_c(runner, GOLDEN / name)
    assert code == 69
    assert "[unavailable]" in words


def test_mutants_are_refused_in_the_same_words(runner, seeds, tmp_path) -> None:
    found, kinds, bundle = [], Counter[str](), tmp_path / "m.nnd"
    for number in range(MUTANTS):
        data = mutant(seeds, number).data
        bundle.write_bytes(data)
        if difference := differences(runner, bundle):
            found.append(f"mutant {number}, {kind_of(number)}: {difference}")
        kinds[kind_of(number)] += bool(by_c(runner, bundle)[0])
    assert not found
    assert kinds["manifest with all fields"] > 50
    assert len(kinds) > 5


EVIL, LIBRARY = "submodels/s0/evil", b"\x7fELF"


def with_variant_behind(**fields: object) -> Edit:
    """Returns an edit that puts a variant behind the one that runs, which is like it but for these fields."""

    def edit(manifest: dict[str, Any]) -> None:
        (submodel,) = manifest["submodels"]
        submodel["variants"].append({**submodel["variants"][0], "id": "z", **fields})

    return edit


def with_native(**fields: object) -> Edit:
    """Returns an edit that changes fields of the variant that runs."""
    return lambda manifest: manifest["submodels"][0]["variants"][0].update(fields)


def with_chain(**fields: object) -> Edit:
    """Returns an edit that puts the submodels a second time into a chain for a box, their variants changed."""

    def edit(manifest: dict[str, Any]) -> None:
        again = json.loads(json.dumps(manifest["submodels"]))
        again[0]["id"] = "b0"
        again[0]["variants"][0].update(fields)
        manifest["target_chains"] = [{"id": "b", "target": "box", "submodels": again, "values": manifest["values"]}]

    return edit


def without_file(name: str) -> Edit:
    return lambda manifest: manifest["submodels"][0]["variants"][0]["files"].pop(name)


def with_file(name: str, *, is_said: bool, backend: str) -> Edit:
    return with_variant_behind(backend=backend, files={name: EVIL}, native_code=is_said)


HOSTILE: dict[str, tuple[Edit | None, dict[str, bytes], int]] = {
    **{f"a lie about {backend}": (with_file(name, is_said=False, backend=backend), {EVIL: LIBRARY}, 77)
       for backend, name in (("tensorrt", "engine.trt"), ("cudnn", "plans.bin"), ("cudnn", "a/plans.bin"),
                             ("triton", "constants.bin"), ("openvino", "model.blob"))},
    **{f"no code of {backend}": (with_file("x", is_said=True, backend=backend), {EVIL: b"x"}, 77)
       for backend in ("tensorrt", "cudnn", "openvino", "onnxruntime", "reference")},
    "two files of code": (with_variant_behind(backend="triton", files={"b": EVIL, "a": EVIL}), {EVIL: LIBRARY}, 77),
    "code of native": (with_native(native_code=True), {}, 77),
    "code beside": (with_file("engine.trt", is_said=True, backend="tensorrt"), {EVIL: LIBRARY}, 0),
    "a backend of nobody": (with_file("x.so", is_said=False, backend="nobody"), {EVIL: LIBRARY}, 0),
    "a library of delays": (
        lambda manifest: manifest.update(pace_libraries={"x86_64": "pacing/pace.so"}), {"pacing/pace.so": LIBRARY}, 0,
    ),
    "a pipeline that leads elsewhere": (
        None, {"pipeline/pipeline.toml": b'[[level.pipeline]]\nmodel = "/x"\n', "pipeline/files.json": b"{}"}, 0,
    ),
    "code in the chain of a box": (with_chain(native_code=True), {}, 77),
    "no plan": (without_file("plan.json"), {}, 65),
    "a library for weights": (None, {"submodels/s0/v0-native/weights.bin": LIBRARY}, 65),
    "no weights": (None, {"submodels/s0/v0-native/weights.bin": b""}, 65),
    "a format of tomorrow": (with_native(metadata={"format": 99}), {}, 69),
    "no format": (with_native(metadata={}), {}, 69),
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_bundles_of_an_attacker_are_refused_in_the_same_words(runner, digits, tmp_path, what) -> None:
    edit, members, code = HOSTILE[what]
    bundle = repacked(digits, tmp_path / "m.nnd", edit, members)
    assert differences(runner, bundle) == ""
    assert by_c(runner, bundle)[0] == code


def edits(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yields containers that are none, by what is wrong."""
    end = len(data)
    yield "nothing", b""
    yield "no ZIP archive", b"\x7fELF" + data
    yield "cut", data[: end // 2]
    yield "a byte more", data + b"\0"
    yield "a comment", data[:-2] + b"\1\0" + b"x"
    yield "another end record", data[:-14] + b"\0\0" + data[-12:]
    yield "no zip64 record", data[:-98] + b"PK\6\5" + data[-94:]
    yield "several disks", data[:-82] + b"\1" + data[-81:]
    yield "two counts", data[:-74] + b"\77" + data[-73:]
    yield "a directory below zero", data[:-43] + b"\x80" + data[-42:]
    yield "another directory", data[:-58] + b"\77" + data[-57:]
    record = data.index(b"PK\1\2")
    for what, offset, byte in (
        ("made by others", 4, 1), ("encrypted", 8, 1), ("a descriptor", 8, 8), ("flags", 9, 8), ("deflated", 10, 8),
        ("a time", 12, 1), ("sizes outside", 20, 1), ("extra fields", 30, 20), ("a comment of a member", 32, 9),
        ("on another disk", 34, 1), ("internal attributes", 36, 1), ("a link", 41, 0xA1), ("a name", 46, 0x2F),
        ("a name of others", 47, 0x41), ("another version", 6, 46),
    ):  # fmt: skip
        yield what, data[: record + offset] + bytes([byte]) + data[record + offset + 1 :]
    yield "a CRC of the directory", data[: record + 16] + bytes([data[record + 16] ^ 1]) + data[record + 17 :]
    yield "a local header", b"PK\3\5" + data[4:]
    yield "a local name", data[:30] + b"h" + data[31:]


def test_containers_that_are_none_are_refused_in_the_same_words(runner, digits, tmp_path) -> None:
    found, bundle = {}, tmp_path / "m.nnd"
    for what, data in edits(digits.read_bytes()):
        bundle.write_bytes(data)
        assert by_c(runner, bundle)[0] == 65, what
        found[what] = differences(runner, bundle)
    assert {what: difference for what, difference in found.items() if difference} == {}


def with_manifest(bundle: Path, change: Callable[[dict[str, object]], bytes | None]) -> bytes:
    """Returns a bundle whose manifest is changed, or is the text that `change` gives."""
    with Bundle(bundle.read_bytes(), bundle) as opened:
        members = {name: bytes(opened.stored(name)) for name in opened.manifest.members}
        manifest = json.loads(bytes(opened.manifest_text))
    text = change(manifest)
    return b"".join(encode_container({**members, MANIFEST_NAME: canonical_json(manifest) if text is None else text}))


MANIFESTS: dict[str, Callable[[dict[str, object]], bytes | None]] = {
    "a newer format": lambda m: m.update(format={"name": "nndeploy-bundle", "major": 2, "minor": 0}),
    "a format that never was": lambda m: m.update(format={"name": "nndeploy-bundle", "major": 0, "minor": 0}),
    "the wrong minor version": lambda m: m.update(format={"name": "nndeploy-bundle", "major": 1, "minor": 9}),
    "blanks": lambda m: json.dumps(m, sort_keys=True).encode(),
    "another order": lambda m: json.dumps(dict(reversed(m.items())), separators=(",", ":")).encode(),
    "another float": lambda m: canonical_json(m).replace(b"0.001", b"0.0010", 1),
    "an exponent": lambda m: canonical_json(m).replace(b"0.001", b"1e-3", 1),
    "no ASCII": lambda m: canonical_json(m).replace(b'"model_name":"', b'"model_name":"\xc3\xa9', 1),
    "too deep": lambda m: m.update(provenance=json.loads('{"a":' * 40 + "1" + "}" * 40)),
    "an infinity": lambda m: canonical_json(m).replace(b"0.001", b"1e999", 1),
    "a number alone": lambda _: b"1e5",
    "an exponent beyond any": lambda _: b"-2E-99999999999999999999",
    "a field more": lambda m: m.update(zz=1),
    "a member that is not there": lambda m: m["members"].update(zz={"sha256": "0" * 64, "size_bytes": 1}),  # type: ignore[attr-defined]
    "a member that is not listed": lambda m: m["members"].pop("report.json") and None,  # type: ignore[attr-defined]
    "another size": lambda m: m["members"]["report.json"].update(size_bytes=1),  # type: ignore[index]
    "another hash": lambda m: m["members"]["submodels/s0/v0-native/plan.json"].update(sha256="0" * 64),  # type: ignore[index]
}


@pytest.mark.parametrize("what", MANIFESTS)
def test_manifests_that_are_none_are_refused_in_the_same_words(runner, digits, tmp_path, what) -> None:
    (tmp_path / "m.nnd").write_bytes(with_manifest(digits, MANIFESTS[what]))
    assert by_c(runner, tmp_path / "m.nnd")[0] == 65
    assert differences(runner, tmp_path / "m.nnd") == ""


@pytest.mark.parametrize("number", [1e16, 1e15, 123456789012345680.0, 5e-324, 1.7976931348623157e308, 0.1, 1e-05, 1e-4,
                                    2.5e-7, 1 / 3, -0.0, 1e22, 9007199254740993.0])  # fmt: skip
def test_floats_have_the_one_text_that_python_writes(runner, digits, tmp_path, number) -> None:
    (tmp_path / "m.nnd").write_bytes(with_manifest(digits, lambda m: m.update(provenance={"x": number})))
    assert by_c(runner, tmp_path / "m.nnd") == (0, "")


def test_a_member_that_is_damaged_is_told_in_the_same_words(runner, digits, tmp_path) -> None:
    data, bundle = bytearray(digits.read_bytes()), tmp_path / "m.nnd"
    data[parse_container(memoryview(data))["report.json"].offset] ^= 1
    bundle.write_bytes(data)
    with pytest.raises(NndeployError) as found:
        verify(bundle, run=False)
    done = subprocess.run([runner, bundle, "--verify"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.partition("]: ")[2].rstrip()) == (65, str(found.value))


def test_a_file_that_is_not_there_is_named_in_the_same_words(runner, tmp_path) -> None:
    assert by_c(runner, tmp_path / "m.nnd") == by_python(tmp_path / "m.nnd")
    assert by_c(runner, tmp_path / "m.nnd")[0] == 66
