# SPDX-License-Identifier: Apache-2.0
"""What a box pays: the base install, a bundle installed, updated over a registry, rolled back, verified and signed.

install   the base install by the script of a wheelhouse, without a network; then `install`, `rollback` and `run` of
          the digit reader, each a command of its own
update    a bundle whose layers lie in one member is pushed to a registry here; then one layer has other weights.
          What is pulled is the new bundle, byte for byte
trust     a whole bundle verified beside a bare hash, the first signature of a process, a bundle signed; a bundle of
          which a byte was changed is refused
"""

import argparse
import hashlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import figures
import numpy as np
from report import Part, Report, bench_parser, run_parts

sys.path += [str(figures.ROOT / "tests" / folder) for folder in ("", "packaging", "unit", "unit/registry")]

from registry_server import RegistryServer
from weighty_bundles import write_weights
from wheel_builds import wheelhouse_of_this_machine

import nndeploy
from nndeploy.bundle.reader import open_bundle
from nndeploy.bundle.writer import write_bundle
from nndeploy.errors import NndeployError
from nndeploy.registry.pull import pull
from nndeploy.registry.push import push
from nndeploy.trust.signatures import check_signatures
from nndeploy.trust.signers import new_key
from nndeploy.trust.signing import sign_bundle
from nndeploy.trust.trust_store import TrustedKey, TrustStore

DIGITS = figures.ROOT / "examples" / "digits" / "digits.onnx"
LAYER_BYTES, NUM_LAYERS, STARTS = 4_000_000, 25, 9
START = """
import sys, time
from pathlib import Path
from nndeploy.bundle.reader import open_bundle
from nndeploy.trust.public_key import read_public_key
from nndeploy.trust.trust_store import TrustedKey, TrustStore
import nndeploy.runtime.program
key = read_public_key(Path(sys.argv[2]))
store = TrustStore({key.id: TrustedKey(key, "farm", frozenset(("code",)))})
with open_bundle(sys.argv[1]) as bundle:
    start = time.perf_counter()
    from nndeploy.trust.signatures import check_signatures
    assert check_signatures(bundle, store, "code", at_least=1).is_allowed
    print((time.perf_counter() - start) * 1e3)
"""


def main() -> None:
    parts: dict[str, Part] = {"install": _install, "update": _update, "trust": _trust}
    parser = bench_parser(__doc__, parts)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=1024, help="of `trust`: size of the bundle")
    run_parts(parser.parse_args(), "robustness.md", "A box", parts)


def seconds_of(call: Callable[[int], object], rounds: int) -> float:
    """Returns the median time of a call, which is told the number of the round."""
    times = []
    for number in range(rounds):
        start = time.perf_counter()
        call(number)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _megabytes(*folders: Path) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Returns how large the files below folders are together, and what they occupy of the disk."""
    files = [path.lstat() for folder in folders for path in folder.rglob("*")]
    return np.array([sum(file.st_size for file in files), sum(file.st_blocks * 512 for file in files)]) / 1e6


def _install(report: Report, options: argparse.Namespace) -> None:
    folder = options.folder
    house = wheelhouse_of_this_machine(folder)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "empty")], check=True)
    environment = {"PATH": os.environ["PATH"], "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
    environment["PYTHON"] = sys.executable

    def install(number: int) -> None:
        command = ["sh", str(house / "install.sh"), str(folder / f"box{number}")]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)

    seconds = seconds_of(install, options.rounds)
    (numpy,) = (folder / "box0").glob("lib/python*/site-packages/numpy")
    numpys = _megabytes(numpy, numpy.with_name("numpy.libs"))
    ours, blocks = _megabytes(folder / "box0") - _megabytes(folder / "empty") - numpys
    table = report.table("the base install", "figure:", "goal:")
    table.row("files that it brings beside NumPy", f"{ours:.0f} MB", "60")
    table.row("the same on this disk, in whole blocks", f"{blocks:.0f} MB", "")
    table.row("NumPy", f"{numpys[0]:.0f} MB", "")
    table.row("time, most of it Python's own for a new environment and pip's", f"{seconds:.1f} s", "")
    _commands(report, folder, options.rounds)


def _commands(report: Report, folder: Path, rounds: int) -> None:
    how = nndeploy.CompileOptions(backends=("native",), objective="priority", keep_fallback=False)
    nndeploy.compile_model(DIGITS, folder / "one.nnd", how)
    with open_bundle(folder / "one.nnd") as bundle:
        members = {path: bundle.member(path) for path in bundle.manifest.members if path != "report.json"}
        write_bundle(folder / "two.nnd", bundle.manifest, members, {**bundle.report(), "model": "another"})
    (folder / "line.jsonl").write_text(DIGITS.with_name("lines.jsonl").read_text().splitlines()[0] + "\n")
    places = {"NNDEPLOY_STORE": str(folder / "store"), "XDG_CONFIG_HOME": str(folder / "config")}
    table = report.table("the digit reader", "s:")
    for what, words in (
        ("`nndeploy install`, the first of a name", "install digits{} one.nnd"),
        ("`nndeploy install` of the next one", "install digits{} two.nnd"),
        ("`nndeploy rollback`", "rollback digits{}"),
        ("`nndeploy run NAME@` of one input", "run digits{}@ --input line.jsonl --output -"),
    ):

        def call(number: int, words: str = words) -> None:
            command = [str(folder / "box0" / "bin" / "nndeploy"), *words.format(number).split()]
            subprocess.run(command, env=places, cwd=folder, check=True, stdout=subprocess.DEVNULL)

        table.row(what, f"{seconds_of(call, rounds):.2f}")


def _update(report: Report, options: argparse.Namespace) -> None:
    path, box = options.folder / "large.nnd", options.folder / "box.nnd"
    write_weights(path, (77,), size=LAYER_BYTES * NUM_LAYERS)
    with RegistryServer() as server:
        first = push(path, server.reference("1"))
        pull(server.reference("1"), box)
        with open_bundle(path) as bundle:
            weights = bytearray(bundle.member("weights/0.bin"))
            begin = NUM_LAYERS // 2 * LAYER_BYTES
            weights[begin : begin + LAYER_BYTES] = bytes(LAYER_BYTES)
            members = {"submodels/s0/plan": b"plan", "weights/0.bin": bytes(weights)}
            write_bundle(path, bundle.manifest, members, bundle.report())
        second = push(path, server.reference("2"))
        pulled = pull(server.reference("2"), box)
    assert box.read_bytes() == path.read_bytes()
    table = report.table(f"{NUM_LAYERS} layers of {LAYER_BYTES / 1e6:.0f} MB in one member", "MB:")
    table.row("the bundle", f"{first.size_bytes / 1e6:.1f}")
    table.row("sent at first", f"{first.sent_bytes / 1e6:.1f}")
    table.row("sent of the next version", f"{second.sent_bytes / 1e6:.1f}")
    table.row("fetched by a box that has the version before", f"{pulled.fetched_bytes / 1e6:.1f}")


# Trust


def _trust(report: Report, options: argparse.Namespace) -> None:
    folder, small = options.folder, options.folder / "small.nnd"
    large = folder / "large.nnd"
    write_weights(large, (0, 1, 2, 3), size=options.megabytes << 18)
    write_weights(small, tuple(range(99)), size=4096)
    gigabytes, data = large.stat().st_size / 1e9, large.read_bytes()
    verify = seconds_of(lambda _: _verify(large), options.rounds)
    bare = seconds_of(lambda _: hashlib.sha256(data).digest(), options.rounds)
    key = new_key(folder / "farm.key")
    (folder / "farm.pub").write_text(key.public.pem)
    sign = seconds_of(lambda _: sign_bundle(small, [key], "1.0"), options.rounds)
    command = [sys.executable, "-c", START, str(small), str(folder / "farm.pub")]
    starts = [float(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(STARTS)]
    store = TrustStore({key.public.id: TrustedKey(key.public, "farm", frozenset(("code",)))})
    with open_bundle(small) as bundle:
        again = seconds_of(lambda _: check_signatures(bundle, store, "code", at_least=1), 51)
    changed = bytearray(data)
    changed[len(changed) // 3] ^= 1
    large.write_bytes(changed)
    try:
        _verify(large)
    except NndeployError:
        pass
    else:
        raise AssertionError("a changed byte was not seen")
    table = report.table("what", "figure:", "goal:")
    what = f"`Bundle.verify` of {gigabytes:.2f} GB: every byte, SHA-256 and CRC-32"
    table.row(what, f"{verify / gigabytes:.2f} s a GB", "1")
    table.row("a bare SHA-256 of as many bytes in memory", f"{bare / gigabytes:.2f} s a GB", "")
    table.row("first signature of a process, of 102 members", f"{statistics.median(starts):.1f} ms", "50")
    table.row("the same again", f"{again * 1e3:.2f} ms", "")
    table.row("`sign` of that bundle by a key in a file", f"{sign * 1e3:.1f} ms", "")


def _verify(path: Path) -> None:
    with open_bundle(path) as bundle:
        bundle.verify()


if __name__ == "__main__":
    main()
