# SPDX-License-Identifier: Apache-2.0
"""A bundle that is loaded and ready to run: names in, arrays out, whatever libraries do the work.

`load_bundle` maps the bundle, opens one session for each submodel on the best variant that this host can take, and
`Program.run` checks the values, runs the chain and returns the outputs. Several threads may call `run` at once.

Law: an input that does not fit is refused before anything is computed; outputs belong to the caller.
"""

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from nndeploy.bundle.manifest import Manifest, NamedType, Submodel, Variant
from nndeploy.bundle.reader import Bundle, open_bundle
from nndeploy.errors import BundleError, NndeployError, UsageError
from nndeploy.plugin.interface import Session
from nndeploy.runtime.chain import Chain, Step
from nndeploy.runtime.input_checks import InputChecks
from nndeploy.runtime.select import Choice, LoadOptions, open_submodel
from nndeploy.value_types import Value


class Program:
    """A loaded bundle; made by `load_bundle`, closed by `close` or the end of its `with` block."""

    def __init__(self, bundle: Bundle, sessions: Sequence[Session], choices: Sequence[Choice]) -> None:
        """Takes over the bundle and the sessions, one for each submodel in order."""
        manifest = bundle.manifest
        self.manifest: Manifest = manifest
        self.choices: tuple[Choice, ...] = tuple(choices)
        self._bundle = bundle
        self._sessions = tuple(sessions)
        self._checks = InputChecks(manifest.inputs, manifest.ranges)
        self._constants = bundle.values(manifest.constants) if manifest.constants else {}
        self._output_names = tuple(output.name for output in manifest.outputs)
        steps = [
            Step(submodel, session, choice.backend, manifest.values)
            for submodel, session, choice in zip(manifest.submodels, sessions, choices, strict=True)
        ]
        self._chain = Chain(steps, self._produced())
        self._has_only_produced = not manifest.aliases and not self._constants
        self._idle = threading.Condition()
        self._num_running = 0
        self._is_closed = False

    @property
    def inputs(self) -> tuple[NamedType, ...]:
        """The inputs, in the model's order."""
        return self.manifest.inputs

    @property
    def outputs(self) -> tuple[NamedType, ...]:
        """The outputs, in the model's order."""
        return self.manifest.outputs

    @property
    def path(self) -> Path:
        """The bundle's file."""
        return self._bundle.path

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line for each variant that this machine should have taken and could not."""
        return tuple(
            f"submodel {choice.submodel} runs on {choice.backend} ({choice.variant}), "
            f"not on {loss.backend} ({loss.variant}): {loss.reason}"
            for choice in self.choices
            for loss in choice.losses
        )

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the value of every output by name.

        Arrays must have the declared dtype; Python numbers and nested lists are converted where nothing is lost.
        Sequences are lists, optionals may be None or left out, strings are object arrays.

        Raises:
            InputError: a name, dtype, rank or size does not fit; nothing was computed.
            DataError: a library failed on these values.
            BundleError: a submodel is not what the manifest says.
            UsageError: the program is closed.
        """
        values = self._checks(inputs)
        self._enter()
        try:
            if self._has_only_produced:
                return self._chain.run(values)
            return self._with_others(values)
        finally:
            self._leave()

    def close(self) -> None:
        """Waits for running calls, then frees sessions and file; a second call does nothing."""
        with self._idle:
            if self._is_closed:
                return
            self._is_closed = True
            self._idle.wait_for(lambda: self._num_running == 0)
        self._chain.close()
        for session in self._sessions:
            session.close()
        self._constants = {}
        self._bundle.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _produced(self) -> list[str]:
        """Returns the outputs that submodels produce.

        Raises:
            BundleError: an output comes from nowhere.
        """
        made = {name for submodel in self.manifest.submodels for name in submodel.outputs}
        for name in self._output_names:
            if name not in made and name not in self.manifest.aliases and name not in self._constants:
                raise BundleError(f"nothing gives the output {name!r}", where=str(self._bundle.path))
        return [name for name in self._output_names if name in made]

    def _with_others(self, values: dict[str, Value]) -> dict[str, Value]:
        """Returns all outputs where some are inputs handed through, or constants; those are copied."""
        passed = {name: _copied(values[source]) for name, source in self.manifest.aliases.items()}
        made = self._chain.run(values)
        constant = {name: _copied(value) for name, value in self._constants.items() if name not in made}
        found = {**constant, **passed, **made}
        return {name: found[name] for name in self._output_names}

    def _enter(self) -> None:
        with self._idle:
            if self._is_closed:
                raise UsageError("the program is closed")
            self._num_running += 1

    def _leave(self) -> None:
        with self._idle:
            self._num_running -= 1
            if self._is_closed:
                self._idle.notify_all()


def load_bundle(
    path: str | os.PathLike[str],
    *,
    threads: int | None = None,
    device: str = "auto",
    strict: bool = False,
    custom_op_libraries: Sequence[str | os.PathLike[str]] = (),
    allow_native_code: bool = True,
) -> Program:
    """Returns the program of a bundle, with one session open for each submodel.

    `threads` is what each session may use, None its library's default. `device` is "auto", "cpu" or "cuda:N".
    `custom_op_libraries` are shared libraries with operators that the bundle says it needs; they are code, and only
    this argument names them. With `strict` a submodel must get the first variant that is meant for this machine.

    Raises:
        MissingInputError: there is no such file.
        BundleError: the bundle is malformed, damaged or of a newer format.
        UnavailableError: a submodel has no variant that can run here.
        UsageError: an argument has no meaning.
    """
    options = LoadOptions(
        device, threads, strict, tuple(os.fspath(library) for library in custom_op_libraries), allow_native_code
    )
    bundle = open_bundle(Path(path))
    try:
        return _program(bundle, options)
    except BaseException as err:
        bundle.close()
        if isinstance(err, NndeployError) and str(path) not in err.where:
            err.within(str(path))
        raise


def _program(bundle: Bundle, options: LoadOptions) -> Program:
    opened = _open_all(bundle, options)
    sessions = [session for session, _ in opened]
    try:
        return Program(bundle, sessions, [choice for _, choice in opened])
    except BaseException:
        for session in sessions:
            session.close()
        raise


def _open_all(bundle: Bundle, options: LoadOptions) -> list[tuple[Session, Choice]]:
    def files_of(variant: Variant) -> dict[str, memoryview]:
        return {name: bundle.member(member) for name, member in variant.files.items()}

    def opened(submodel: Submodel) -> tuple[Session, Choice]:
        return open_submodel(submodel, files_of, options)

    submodels = bundle.manifest.submodels
    if len(submodels) < 2:
        return [opened(submodel) for submodel in submodels]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(len(submodels), os.cpu_count() or 1)) as pool:
        waiting = [pool.submit(opened, submodel) for submodel in submodels]
    failed = [future.exception() for future in waiting]
    if error := next((err for err in failed if err is not None), None):
        for future in waiting:
            if future.exception() is None:
                future.result()[0].close()
        raise error
    return [future.result() for future in waiting]


def _copied(value: Value) -> Value:
    """Returns a value of the caller's own: neither the caller's input nor the mapped file."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return {key: _copied(item) for key, item in value.items()} if isinstance(value, dict) else value
