# SPDX-License-Identifier: Apache-2.0
"""What trust costs: a whole bundle verified, a signature checked at a start, a bundle signed, beside a bare hash."""

import argparse
import hashlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import figures
import numpy as np
from native_engines import machine_name

from nndeploy.bundle.manifest import Manifest, NamedType, Submodel, Variant
from nndeploy.bundle.reader import open_bundle
from nndeploy.bundle.writer import write_bundle
from nndeploy.trust.signatures import check_signatures
from nndeploy.trust.signers import new_key
from nndeploy.trust.signing import sign_bundle
from nndeploy.trust.trust_store import TrustedKey, TrustStore
from nndeploy.values.types import TensorType

ROUNDS, STARTS = 3, 9
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

PAGE = """{header}# Trust: figures

`make bench-trust ARGS=--write`. Medians. In the same run a bundle is refused of which a byte was changed.

| what | figure | goal |
| --- | ---: | ---: |
| `Bundle.verify` of {gigabytes:.2f} GB: every byte, SHA-256 and CRC-32 | {verify:.2f} s a GB | 1 |
| a bare SHA-256 of as many bytes in memory | {bare:.2f} s a GB | |
| the first signature of a process, of a bundle of {members} members | {start:.1f} ms | 50 |
| the same again | {again:.2f} ms | |
| `sign` of that bundle by a key in a file | {sign:.1f} ms | |
"""


def write(path: Path, sizes: list[int]) -> Path:
    """Writes a bundle with members of these sizes, of random bytes."""
    random, kind = np.random.default_rng(0), TensorType("float32", (1,))
    members = {f"weights/{i}": random.bytes(size) for i, size in enumerate(sizes)}
    files = {f"{i}.bin": name for i, name in enumerate(members)}
    manifest = Manifest(
        model_name="m",
        model_sha256="0" * 64,
        inputs=(NamedType("x", kind),),
        outputs=(NamedType("y", kind),),
        submodels=(Submodel("s0", ("x",), ("y",), (Variant("v", "onnxruntime", "host", files),)),),
        values={"x": kind, "y": kind},
    )
    write_bundle(path, manifest, members, {})
    return path


def median_seconds(call: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Returns the median time of a call."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def bare_seconds(path: Path) -> float:
    """Returns the median time of a hash of a file's bytes, which are in memory."""
    data = path.read_bytes()
    return median_seconds(lambda: hashlib.sha256(data).digest())


def verified(path: Path) -> None:
    with open_bundle(path) as bundle:
        bundle.verify()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/figures/trust-results.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        large = write(folder / "large.nnd", [256 << 20] * 4)
        gigabytes = large.stat().st_size / 1e9
        verify, bare = median_seconds(lambda: verified(large)), bare_seconds(large)
        key, small = new_key(folder / "farm.key"), write(folder / "small.nnd", [4096] * 100)
        (folder / "farm.pub").write_text(key.public.pem)
        sign = median_seconds(lambda: sign_bundle(small, [key], "1.0"))
        command = [sys.executable, "-c", START, str(small), str(folder / "farm.pub")]
        starts = [float(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(STARTS)]
        store = TrustStore({key.public.id: TrustedKey(key.public, "farm", frozenset(("code",)))})
        with open_bundle(small) as bundle:
            again = median_seconds(lambda: check_signatures(bundle, store, "code", at_least=1), 51)
        changed = bytearray(large.read_bytes())
        changed[len(changed) // 3] ^= 1
        large.write_bytes(changed)
        try:
            verified(large)
        except Exception as err:
            assert "damaged" in str(err), err  # noqa: PT017 - no test
        else:
            raise AssertionError("a changed byte was not seen")
    text = PAGE.format(
        header=figures.header(figures.figure("trust-results.md"), machine_name()),
        gigabytes=gigabytes, verify=verify / gigabytes, bare=bare / gigabytes, members=102,
        start=statistics.median(starts), again=again * 1e3, sign=sign * 1e3,
    )  # fmt: skip
    print(text)
    if options.write:
        (figures.FIGURES / "trust-results.md").write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
