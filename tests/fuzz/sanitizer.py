# SPDX-License-Identifier: Apache-2.0
"""AddressSanitizer: whether programs can be built with it here, and what one that ended by it raises."""

import shutil
import subprocess
from pathlib import Path


class FoundError(AssertionError):
    """A mutant crashed, touched what is not its own, or did not end; how to run it again is in the message."""


def sanitizer_missing(folder: Path) -> str:
    """Returns why no program can be linked with AddressSanitizer here, or ""."""
    gcc = shutil.which("gcc")
    if gcc is None:
        return "no gcc here, whose libasan is AddressSanitizer's runtime"
    (folder / "empty.c").write_text("int main(void) { return 0; }\n", encoding="utf-8")
    tried = subprocess.run([gcc, "-fsanitize=address", "empty.c"], cwd=folder, capture_output=True, check=False)
    return "gcc has no libasan here" if tried.returncode else ""
