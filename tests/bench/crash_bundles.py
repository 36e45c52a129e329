# SPDX-License-Identifier: Apache-2.0
"""Cases of crashes: bundles are compiled, written and signed, keys made and trusted, wheels gathered."""

import contextlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crash_case import Case, Content, command, only_temporary, say, write_bundle

TRUST = "config/nndeploy/trust.json"
MODEL = """<ir_version: 8, opset_import: ["": 17]>
g (float[2,3] x) => (float[2,3] y) {{ c = Constant<value = float {{{factor}}}>() y = Mul(x, c) }}"""
CACHE = "cache"


def _rewrite() -> int:
    from nndeploy.errors import NndeployError

    try:
        write_bundle("m.nnd", b"new")
    except NndeployError as err:
        return err.exit_code
    return 0


def _before_sign() -> None:
    write_bundle("m.nnd", b"old")
    say("key", "new", "farm")


# ---- the compile, whole, with temporary folders below the place that is watched


def _before_compile() -> None:
    _write_model(2)
    Path("tmp").mkdir()
    write_bundle("m.nnd", b"old")


def _before_cached(*factors: int) -> Callable[[], None]:
    """Returns what leaves a cache that knows models, and the model of the factor 2."""

    def before() -> None:
        _before_compile()
        for factor in factors:
            _write_model(factor)
            assert _compile("--cache-dir", CACHE) == 0
        _write_model(2)
        write_bundle("m.nnd", b"old")

    return before


def _write_model(factor: int) -> None:
    import onnx
    import onnx.parser

    onnx.save(onnx.parser.parse_model(MODEL.format(factor=factor)), "m.onnx")


def _compile(*more: str) -> int:
    """Compiles as the command does, with what its children do done here: they would not be watched."""
    from nndeploy.compiler import job
    from nndeploy.errors import CrashedError
    from nndeploy.jobs import workers
    from nndeploy.sandbox.child_process import start_child

    class Here(workers.InProcessWorkers):
        def __init__(self, *_: object, **__: object) -> None: ...
        def close(self) -> None: ...

    def run(folder: Path, *_: object) -> CrashedError:
        request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
        answer = json.dumps(job._compile(request, folder / job.MADE, lambda *_: None, start_child))
        (folder / "response.json").write_text(answer, encoding="utf-8")
        return CrashedError("it left no answer")

    tempfile.tempdir = str(Path("tmp").absolute())
    patched: Any = workers
    patched.ChildWorkers = Here
    patched = job
    patched._run = run
    return command("compile", "m.onnx", "-o", "m.nnd", "--backends", "onnxruntime", "--objective", "priority", *more)()


def _compile_again() -> int:
    """Compiles with the cache that a fault left, twice, then without; returns 0 where all bundles are the same.

    What is damaged in the cache goes before, which is said with exit code 1; nothing then is damaged any more.
    """
    codes = [command("cache", "verify", "--cache-dir", CACHE)() for _ in range(2)]
    if codes not in ([0, 0], [1, 0]):
        return 90
    made = []
    for more in (("--cache-dir", CACHE), ("--cache-dir", CACHE), ("--no-cache",)):
        Path("m.nnd").unlink(missing_ok=True)
        code = _compile(*more)
        if code:
            return code
        made.append(Path("m.nnd").read_bytes())
    return 0 if len(set(made)) == 1 else 91


def _a_right_bundle(old: Content, new: Content, now: Content) -> None:
    """Checks that the bundle is the old one, or whole and right: it may be another where a backend met the fault."""
    import numpy as np

    from nndeploy.bundle.reader import open_bundle
    from nndeploy.runtime.program import load_bundle

    others = (CACHE, "tmp/", "config/")
    only_temporary(old, new, {name: data for name, data in now.items() if not name.startswith(others)})
    if now["m.nnd"] in (old["m.nnd"], new["m.nnd"]):
        return
    with open_bundle(Path("m.nnd")) as bundle:
        bundle.verify()
    with contextlib.closing(load_bundle("m.nnd")) as program:
        assert program.run({"x": np.ones((2, 3), np.float32)})["y"].tolist() == [[2, 2, 2]] * 2, "it computes else"


def _cached_case(name: str, *factors: int) -> Case:
    def act() -> int:
        return _compile("--cache-dir", CACHE)

    return Case(
        name, _before_cached(*factors), act, "", _a_right_bundle, repeats=False, then=_compile_again, then_every=8,
        parts=8, leaves=("m.nnd",),
    )  # fmt: skip


# ---- keys


def _pairs(old: Content, new: Content, now: Content) -> None:
    """Checks that a public key is whole, and not without its private one."""
    from nndeploy.trust.public_key import read_public_key
    from nndeploy.trust.signers import read_key

    only_temporary(old, new, now)
    if "farm.key" in now:
        private = read_key(Path("farm.key")).public
    if "farm.pub" in now:
        assert read_public_key(Path("farm.pub")) == private, "farm.pub is of another key"


def _trusting(*more: tuple[str, ...]) -> Callable[[], None]:
    def before() -> None:
        for name in ("farm", "other"):
            say("key", "new", name)
        for words in more:
            say(*words)

    return before


_OTHER, _FLOOR = ("key", "trust", "other.pub"), ("key", "floor", "faces", "1.0")


def _trust_case(name: str, *words: str, before: tuple[tuple[str, ...], ...] = (_OTHER, _FLOOR)) -> Case:
    return Case(name, _trusting(*before), command("key", *words), TRUST, only_temporary)


# ---- wheels


def _before_wheelhouse() -> None:
    from test_wheelhouse_gather import X86, put

    from nndeploy.version import __version__

    put(Path("shelf"), "nndeploy-toolchain", __version__, X86, needs=["numpy>=2"])
    put(Path("shelf"), "numpy", "2.1", "cp311-cp311-manylinux_2_28_x86_64")


def _gather() -> int:
    """Gathers wheels, with pip's part done here: copies of those that a folder has."""
    from nndeploy.wheelhouse import gather

    def download(_: object, folder: Path, *__: object) -> None:
        folder.mkdir()
        for path in sorted(Path("shelf").iterdir()):
            (folder / path.name).write_bytes(path.read_bytes())

    patched: Any = gather
    patched.download = download
    os.umask(0o022)
    return command("wheelhouse", "--for", "x86_64", "--python", "3.11", "--find-links", "shelf", "-o", "box")()


def _a_whole_folder(old: Content, new: Content, now: Content) -> None:
    """Checks that the folder of wheels is there with all that belongs into it, or not at all."""
    only_temporary(old, new, now)
    if "box/" in now:
        assert {name: data for name, data in now.items() if name.startswith("box/")} == {
            name: data for name, data in new.items() if name.startswith("box/")
        }, "the folder has its name and is not whole"


ALL = (
    Case(
        "compile over another", _before_compile, lambda: _compile("--no-cache"), "", _a_right_bundle, then_every=8,
        parts=8, leaves=("m.nnd",),
    ),
    _cached_case("compile into a cache", 3),
    _cached_case("compile from a cache", 3, 2),
    Case("a bundle written", lambda: None, _rewrite, "m.nnd", only_temporary),
    Case("a bundle written over another", lambda: write_bundle("m.nnd", b"old"), _rewrite, "m.nnd", only_temporary),
    Case(
        "sign", _before_sign, command("sign", "m.nnd", "--key", "farm.key", "--release", "1.4.0"), "m.nnd",
        only_temporary,
    ),
    Case("key new", lambda: None, command("key", "new", "farm"), "", _pairs, repeats=False, then_codes=(0, 73)),
    _trust_case("key trust, no store yet", "trust", "farm.pub", before=()),
    _trust_case("key trust", "trust", "farm.pub"),
    _trust_case("key revoke", "revoke", "other"),
    _trust_case("key floor", "floor", "faces", "1.4"),
    Case("wheelhouse", _before_wheelhouse, _gather, "", _a_whole_folder, repeats=False, then_codes=(0, 73)),
)  # fmt: skip
