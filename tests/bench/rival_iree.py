# SPDX-License-Identifier: Apache-2.0
"""IREE, made inside a child of `interleaved`: compiled for this processor at the level O2.

One thread is its device that runs in the caller, several are its pool of so many.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import rival_models
from interleaved import Inputs, Ready

COMPILE = (
    "--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O2",
)  # fmt: skip


def ready(inputs: Inputs, model: str, folder: str, threads: int, outputs: dict[str, list[int]]) -> Ready:
    import iree.runtime as library
    from iree.runtime.version import VERSION

    made = rival_models.kept(folder, f"iree {VERSION}", model, _convert)
    if threads > 1:
        library.flags.parse_flags(f"--task_topology_group_count={threads}")
    config = library.Config("local-sync" if threads == 1 else "local-task")
    module = library.VmModule.mmap(config.vm_instance, str(made / "model.vmfb"))
    loaded = library.load_vm_module(module, config)
    (function,) = (loaded[name] for name in module.function_names if not name.startswith("__") and "$" not in name)
    arrays = [np.ascontiguousarray(array) for array in inputs.values()]

    def call() -> list[Any]:
        found = function(*arrays)
        return [one.to_host() for one in (found if isinstance(found, tuple) else (found,))]

    return Ready(call, list, VERSION)


def _convert(source: Path, folder: Path) -> None:
    tools, imported, made = Path(sys.executable).parent, folder / "model.mlir", folder / "model.vmfb"
    rival_models.converted(
        [tools / "iree-import-onnx", source, "--opset-version", "17", "-o", imported], imported, folder
    )
    rival_models.converted([tools / "iree-compile", imported, *COMPILE, "-o", made], made, folder)
    imported.unlink()
