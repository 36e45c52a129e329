# SPDX-License-Identifier: Apache-2.0
"""Kept tables of units under kill -9: processes share a folder, and are killed at random moments.

python tests/bench/bench_units_cache.py [--processes 8] [--shapes 10000] [--kills 200]
"""

import argparse
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "unit" / "native_backend"))  # before our own folder, which has a native_models too


def main() -> int:
    from native_models import runnable_isas
    from nndeploy_native.units.compile_units import build_units
    from units_cache_kills import check_folder, fill_and_kill

    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("processes", 8), ("shapes", 10_000), ("kills", 200)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, isa = Path(name), runnable_isas()[0]
        (folder / "units.so").write_bytes(build_units(isa, folder))
        cache, processes, shapes = folder / "cache", options.processes, options.shapes
        killed = fill_and_kill(folder / "units.so", isa.name, cache, processes, shapes, options.kills)
        count = check_folder(folder / "units.so", cache)
    print(f"{processes} processes, {shapes} shapes, {killed} kills: {count} tables are kept, none wrong, none torn")
    return 0


if __name__ == "__main__":
    sys.exit(main())
