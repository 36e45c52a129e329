# SPDX-License-Identifier: Apache-2.0
"""Parts of the C runtime by themselves: hashes, inflating, names of symbols in object files."""

import ctypes
import hashlib
import random
import shutil
import subprocess
import zlib
from pathlib import Path
from typing import Any

import pytest
from nndeploy_kernels.build import SOURCES
from nndeploy_kernels.build_runtime import RUNTIME
from nndeploy_kernels.symbol_names import with_prefix

PARTS = """
#include "runtime/hashes.c"
#include "runtime/inflate.c"
static void hashed(void (*add)(uint32_t *, const uint8_t *, int64_t), const uint8_t *data, int64_t size, char *text) {
  struct nnd_sha256 hash;
  nnd_sha256_begin(&hash);
  add(hash.state, data, size / 64);
  hash.bytes = (uint64_t)(size / 64 * 64);
  nnd_sha256_add(&hash, data + size / 64 * 64, size % 64);
  nnd_sha256_text(&hash, text);
}
void hashed_plain(const uint8_t *data, int64_t size, char *text) { hashed(nnd_sha256_plain, data, size, text); }
void hashed_best(const uint8_t *data, int64_t size, char *text) { hashed(nnd_sha256_blocks, data, size, text); }
"""
MOST = 1 << 16


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Any:
    compiler = shutil.which("cc") or pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("parts")
    (folder / "parts.c").write_text(PARTS)
    flags = ["-O1", "-fPIC", "-shared", "-I", RUNTIME.parent, "-I", SOURCES]
    subprocess.run([compiler, *flags, folder / "parts.c", "-o", folder / "parts.so"], check=True)
    library = ctypes.CDLL(str(folder / "parts.so"))
    library.nnd_inflate.restype = ctypes.c_int64
    library.nnd_crc32.restype = ctypes.c_uint32
    return library


@pytest.mark.parametrize("how", ["hashed_plain", "hashed_best"])
def test_sha256_is_that_of_the_standard(parts: Any, how: str) -> None:
    dice, text = random.Random(1), ctypes.create_string_buffer(65)  # noqa: S311
    for size in (*range(200), 1000, 4096, 70001):
        data = dice.randbytes(size)
        getattr(parts, how)(data, ctypes.c_int64(size), text)
        assert text.value.decode() == hashlib.sha256(data).hexdigest(), size


def test_crc32_is_that_of_archives(parts: Any) -> None:
    data = bytes(range(256)) * 3
    assert parts.nnd_crc32(data, ctypes.c_int64(len(data))) == zlib.crc32(data)


def inflated(parts: Any, stream: bytes, most: int = MOST) -> bytes | None:
    target = ctypes.create_string_buffer(max(1, most))
    size = parts.nnd_inflate(stream, ctypes.c_int64(len(stream)), target, ctypes.c_int64(most))
    return None if size < 0 else target.raw[:size]


def contents() -> list[bytes]:
    dice = random.Random(2)  # noqa: S311
    text = " ".join(dice.choices(["window", "tile", "plan", "weights"], k=2000)).encode()
    return [b"", b"a", bytes(40000), dice.randbytes(5000), text, text + bytes(3000) + dice.randbytes(100)]


@pytest.mark.parametrize("level", [0, 1, 6, 9])
@pytest.mark.parametrize("strategy", [zlib.Z_DEFAULT_STRATEGY, zlib.Z_FIXED, zlib.Z_HUFFMAN_ONLY])
def test_what_zlib_deflates_is_inflated(parts: Any, level: int, strategy: int) -> None:
    for data in contents():
        stream = zlib.compressobj(level, zlib.DEFLATED, 15, 8, strategy)
        deflated = stream.compress(data) + stream.flush()
        assert inflated(parts, deflated) == data
        assert inflated(parts, deflated, len(data)) == data
        assert not data or inflated(parts, deflated, len(data) - 1) is None


def test_damaged_streams_give_what_zlib_gives_or_nothing(parts: Any) -> None:
    dice = random.Random(3)  # noqa: S311
    for data in contents():
        deflated = bytearray(zlib.compress(data))
        for _ in range(300):
            changed = bytearray(deflated)
            for _ in range(dice.randint(1, 3)):
                changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
            found = inflated(parts, bytes(changed[: dice.randint(1, len(changed))] if dice.random() < 0.2 else changed))
            assert found is None or found == data


def test_only_symbols_that_begin_so_are_renamed(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or pytest.skip("no C compiler")
    (tmp_path / "a.c").write_text("int nnd_one(void) { return 1; }\nint other(void) { return nnd_one() + 1; }\n")
    (tmp_path / "b.c").write_text(
        "int v9_nnd_one(void);\nint other(void);\nint main(void) { return v9_nnd_one() + other(); }\n"
    )
    subprocess.run([compiler, "-O0", "-c", "a.c", "-o", "a.o"], cwd=tmp_path, check=True)
    (tmp_path / "renamed.o").write_bytes(with_prefix((tmp_path / "a.o").read_bytes(), "nnd_", "v9_"))
    subprocess.run([compiler, "b.c", "renamed.o", "-o", "b"], cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "b"], check=False).returncode == 3


def test_what_is_no_object_file_is_not_renamed() -> None:
    with pytest.raises(ValueError, match="ELF"):
        with_prefix(b"not an object file of anything", "nnd_", "v9_")
