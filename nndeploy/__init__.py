# SPDX-License-Identifier: Apache-2.0
"""nndeploy: compile a trained ONNX model into one offline bundle, and run it.

`compile_model` is the compile half, `load_bundle` the run half; each is imported when it is first asked for, so
that an edge device that only runs bundles never loads onnx.
"""

from typing import TYPE_CHECKING, Any

from nndeploy.version import __version__

__all__ = [
    "CompileOptions", "Inspection", "LoadOptions", "PlaceLimit", "Program", "Pulled", "Pushed", "RegistryOptions",
    "Report", "RunOptions", "Target", "Verification", "__version__", "compile_model", "inspect", "load_bundle", "pull",
    "push", "run_pipeline", "target_of", "verify",
]  # fmt: skip

if TYPE_CHECKING:
    from nndeploy.bundle.report import Report
    from nndeploy.compiler.flow import compile_model
    from nndeploy.compiler.options import CompileOptions
    from nndeploy.registry.options import RegistryOptions
    from nndeploy.registry.pull import Pulled, pull
    from nndeploy.registry.push import Pushed, push
    from nndeploy.runtime.inspect_bundle import Inspection, inspect
    from nndeploy.runtime.load_options import LoadOptions
    from nndeploy.runtime.program import Program, load_bundle
    from nndeploy.runtime.verify_bundle import Verification, verify
    from nndeploy.stream.run.options import RunOptions
    from nndeploy.stream.run.run_pipeline import run_pipeline
    from nndeploy.target.known_targets import target_of
    from nndeploy.target.place_limits import PlaceLimit
    from nndeploy.target.target import Target

_HOMES = {
    "compile_model": "nndeploy.compiler.flow",
    "CompileOptions": "nndeploy.compiler.options",
    "Report": "nndeploy.bundle.report",
    "Program": "nndeploy.runtime.program",
    "load_bundle": "nndeploy.runtime.program",
    "Inspection": "nndeploy.runtime.inspect_bundle",
    "inspect": "nndeploy.runtime.inspect_bundle",
    "Verification": "nndeploy.runtime.verify_bundle",
    "verify": "nndeploy.runtime.verify_bundle",
    "Pulled": "nndeploy.registry.pull",
    "pull": "nndeploy.registry.pull",
    "Pushed": "nndeploy.registry.push",
    "push": "nndeploy.registry.push",
    "RegistryOptions": "nndeploy.registry.options",
    "LoadOptions": "nndeploy.runtime.load_options",
    "RunOptions": "nndeploy.stream.run.options",
    "run_pipeline": "nndeploy.stream.run.run_pipeline",
    "Target": "nndeploy.target.target",
    "target_of": "nndeploy.target.known_targets",
    "PlaceLimit": "nndeploy.target.place_limits",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'nndeploy' has no attribute {name!r}")
    import importlib

    if name == "compile_model":
        from nndeploy.compiler.compile_half import check_compile_half

        check_compile_half()
    return getattr(importlib.import_module(_HOMES[name]), name)
