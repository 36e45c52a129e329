# SPDX-License-Identifier: Apache-2.0
"""A case on an engine: how it is run, and what came of it.

`reference`, `onnxruntime`, `openvino`, `native`: the backend alone, after the frontend and the passes, with nothing to
compare with. `default`: a whole compile with all backends, and its bundle run.
"""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from oracle.cases.case import Case, Verdict
from oracle.compare import difference
from oracle.registry import UnspecifiedError

ENGINES = ("reference", "onnxruntime", "openvino", "native", "default")


class RefusedError(Exception):
    """The engine says that it does not take the case, with a reason."""


class FailedError(Exception):
    """The engine took the model, and raised an error on the inputs."""


def verdict_of(case: Case, engine: str) -> Verdict:
    """Runs a case and holds what comes out against the oracle."""
    try:
        wanted = case.wanted
    except UnspecifiedError:
        return Verdict("unspecified")
    try:
        got = outputs_of(case.model, case.inputs, engine)
    except RefusedError as err:
        return Verdict("refused", _line(err))
    except FailedError as err:
        return Verdict("right" if wanted is None else "error", _line(err))
    if wanted is None:
        return Verdict("wrong", "no error")
    found = difference(wanted, got, signed_zeros=case.signed_zeros, steps=case.steps)
    return Verdict("wrong" if found else "right", found)


def outputs_of(model: Any, inputs: Mapping[str, Any], engine: str, *, is_shown: bool = False) -> dict[str, Any]:
    """Returns the outputs of a model on an engine; with `is_shown` a compile gets the inputs as its sample.

    Raises:
        RefusedError: it does not take the model.
        FailedError: it took it and failed on these inputs.
    """
    if engine == "reference":
        return _on_reference(model, inputs)
    with tempfile.TemporaryDirectory() as folder:
        if engine == "default":
            return _on_default(model, inputs, [inputs] if is_shown else None, Path(folder))
        return _on_backend(model, inputs, engine, Path(folder))


def _on_reference(model: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The evaluator gets the model as it is: it is what conversions are checked with."""
    from nndeploy_reference.rules import refusal_of
    from nndeploy_reference.session import evaluator_of

    if reason := refusal_of(model):
        raise RefusedError(reason)
    try:
        evaluator = evaluator_of(model)
    except Exception as err:
        raise RefusedError(str(err)) from err
    names = [output.name for output in model.graph.output]
    try:
        with np.errstate(all="ignore"):
            outputs = evaluator.run(names, dict(inputs))
    except Exception as err:
        raise FailedError(f"{type(err).__name__}: {err}") from err
    return dict(zip(names, map(_as_objects, outputs), strict=True))


def _as_objects(value: Any) -> Any:
    """Returns text as Python's; all else as the operator gave it, for a session would give it the declared type."""
    return value.astype(object) if isinstance(value, np.ndarray) and value.dtype.kind in "SUT" else value


def _on_backend(model: Any, inputs: Mapping[str, Any], engine: str, folder: Path) -> dict[str, Any]:
    from nndeploy.errors import NndeployError
    from nndeploy.plugin.interface import OpenOptions
    from nndeploy.plugin.registry import backend

    artifact = built_alone(model, engine, folder)
    files = {name: memoryview(bytes(data)) for name, data in artifact.files.items()}
    try:
        session = backend(engine).open(files, json.loads(json.dumps(artifact.metadata)), OpenOptions(threads=1))
    except NndeployError as err:
        raise RefusedError(str(err)) from err
    return _called(session, inputs)


def built_alone(model: Any, engine: str, folder: Path) -> Any:
    """Returns what a backend makes of a whole model, after the frontend and the passes; `folder` is for its own files.

    Raises:
        RefusedError: it does not take the model.
    """
    from nndeploy.errors import BuildRefusedError, NndeployError
    from nndeploy.frontend.load import load_model
    from nndeploy.passes import optimise
    from nndeploy.plugin.interface import BuildOptions
    from nndeploy.plugin.registry import backend
    from nndeploy.target.target import host_target

    plugin, target = backend(engine), host_target()
    try:
        loaded = load_model(model)
        optimise(loaded.model)
        for transform in plugin.transforms(target):
            transform(loaded.model, lambda _: True)
        answers = plugin.supports(loaded.model, target, BuildOptions())
        if reasons := [answer.reason for answer in answers if not answer.ok]:
            raise RefusedError(reasons[0])
        return plugin.build(loaded.model, target, BuildOptions(), folder)
    except (NndeployError, BuildRefusedError) as err:
        raise RefusedError(str(err)) from err


def _on_default(model: Any, inputs: Mapping[str, Any], samples: Any, folder: Path) -> dict[str, Any]:
    import nndeploy
    from nndeploy.errors import NndeployError

    try:
        options = nndeploy.CompileOptions(samples=samples, allow_uncompared=True)
        nndeploy.compile_model(model, folder / "case.nnd", options)
    except NndeployError as err:
        raise RefusedError(str(err)) from err
    with nndeploy.load_bundle(folder / "case.nnd", nndeploy.LoadOptions(threads=1)) as program:
        return _called(program, inputs)


def _called(session: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return dict(session.run(dict(inputs)))
    except Exception as err:
        raise FailedError(f"{type(err).__name__}: {err}") from err


def _line(err: Exception) -> str:
    return " ".join(str(err).split())[:300]
