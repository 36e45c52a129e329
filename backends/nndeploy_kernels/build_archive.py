# SPDX-License-Identifier: Apache-2.0
"""What C programs build with: `python -m nndeploy_kernels.build_archive VERSION FOLDER [ARCHITECTURE ...]`.

    nndeploy-VERSION-linux-ARCH.tar.gz: bin/nndeploy-run*, include/, lib/ with pkg-config and CMake files, LICENSE

Law: the same sources and version give the same bytes; the files work wherever the archive is unpacked.
"""

import gzip
import io
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from nndeploy_kernels.build_runtime import RUNTIME, build_libraries, build_runners
from nndeploy_kernels.levels import LEVELS

LICENSE = Path(__file__).parents[2] / "LICENSE"

PKG_CONFIG = """\
prefix=${{pcfiledir}}/../..
libdir=${{prefix}}/lib
includedir=${{prefix}}/include

Name: nndeploy
Description: Runs bundles of nndeploy
Version: {version}
Cflags: -I${{includedir}}
Libs: -L${{libdir}} -lnndeploy
Libs.private: -lpthread -lm
"""

CMAKE = """\
# find_package(nndeploy) gives nndeploy::nndeploy, the shared library, and nndeploy::static.
get_filename_component(_nndeploy "${{CMAKE_CURRENT_LIST_DIR}}/../../.." ABSOLUTE)
find_package(Threads REQUIRED)
if(NOT TARGET nndeploy::nndeploy)
  add_library(nndeploy::nndeploy SHARED IMPORTED)
  set_target_properties(nndeploy::nndeploy PROPERTIES
    IMPORTED_LOCATION "${{_nndeploy}}/lib/libnndeploy.so" IMPORTED_SONAME libnndeploy.so
    INTERFACE_INCLUDE_DIRECTORIES "${{_nndeploy}}/include")
  add_library(nndeploy::static STATIC IMPORTED)
  set_target_properties(nndeploy::static PROPERTIES
    IMPORTED_LOCATION "${{_nndeploy}}/lib/libnndeploy.a" INTERFACE_INCLUDE_DIRECTORIES "${{_nndeploy}}/include"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;m")
endif()
"""

CMAKE_VERSION = """\
set(PACKAGE_VERSION "{version}")
if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
"""


def write_archive(version: str, folder: Path, arch: str) -> Path:
    """Writes the archive of an architecture to a folder, and returns it.

    Raises:
        RuntimeError: the compiler refuses a source.
        OSError: it cannot be written.
    """
    name = f"nndeploy-{version}-linux-{arch}"
    out = folder / f"{name}.tar.gz"
    static, shared = build_libraries(arch)
    files = {
        "LICENSE": LICENSE.read_bytes(),
        **{f"bin/{path.name}": path.read_bytes() for path in build_runners(arch)},
        **{f"include/{header}": (RUNTIME / header).read_bytes() for header in ("nndeploy.h", "nndeploy.hpp")},
        "lib/cmake/nndeploy/nndeploy-config-version.cmake": CMAKE_VERSION.format(version=version).encode(),
        "lib/cmake/nndeploy/nndeploy-config.cmake": CMAKE.format().encode(),
        "lib/libnndeploy.a": static.read_bytes(),
        "lib/libnndeploy.so": shared.read_bytes(),
        "lib/pkgconfig/nndeploy.pc": PKG_CONFIG.format(version=version).encode(),
    }
    folder.mkdir(parents=True, exist_ok=True)
    out.write_bytes(gzip.compress(_tar(name, files), 6, mtime=0))
    return out


def _tar(folder: str, files: Mapping[str, bytes]) -> bytes:
    """Returns the files in one folder, as nobody's and of no date."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path, data in sorted(files.items()):
            member = tarfile.TarInfo(f"{folder}/{path}")
            member.size = len(data)
            member.mode = 0o755 if path.startswith("bin/") or path.endswith(".so") else 0o644
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def main(arguments: Sequence[str]) -> None:
    """Writes the archives of architectures, of all where none is named."""
    known = sorted({level.arch for level in LEVELS})
    version, folder, *architectures = arguments
    if others := sorted(set(architectures) - set(known)):
        sys.exit(f"no architecture is called {others[0]!r}; known: {', '.join(known)}")
    for arch in architectures or known:
        write_archive(version, Path(folder), arch)


if __name__ == "__main__":
    main(sys.argv[1:])
