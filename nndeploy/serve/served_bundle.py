# SPDX-License-Identifier: Apache-2.0
"""A bundle that is open and answers: records go through its program, several in one call where that is right.

Law: a bundle whose goldens are wrong on this machine is never handed out.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from nndeploy.errors import CheckError, UsageError
from nndeploy.runtime.batching import JoinedCalls, Proof
from nndeploy.runtime.program import Program
from nndeploy.runtime.verify_bundle import golden_verdicts
from nndeploy.serve.datatypes import Tensor, tensor_of
from nndeploy.serve.infer_request import Say
from nndeploy.serve.options import ServeOptions
from nndeploy.stream.description import RunnerPlan
from nndeploy.stream.engine.runner import Runner
from nndeploy.stream.records import Record


class ServedBundle:
    """Runs records through one program; several threads may call `run` at once."""

    platform = "nndeploy_bundle"
    is_sound, writer = True, None

    def __init__(self, program: Program, name: str, options: ServeOptions, say: Say) -> None:
        """Takes the program over, whose goldens it runs.

        Raises:
            CheckError: an output of a golden is wrong on this machine, or there are no goldens.
            UsageError: the protocol has no form for an input or output.
        """
        self._program, self._name, self._say = program, name, say
        self.meanwhile = ExitStack()
        """What goes on until it is closed."""
        self.num_at_once = program.calls_at_once
        self._is_closed = False
        try:
            self.inputs: tuple[Tensor, ...] = tuple(map(tensor_of, program.manifest.inputs))
            self.outputs: tuple[Tensor, ...] = tuple(map(tensor_of, program.manifest.outputs))
            if options.checks_goldens:
                check_goldens(program)
        except BaseException:
            program.close()
            raise
        plan = RunnerPlan(None, {item.name: item.name for item in program.manifest.outputs})
        self._alone = Runner(program, plan, "pass", "", Proof())
        self._runner = Runner(program, replace(plan, batch=options.batch), "pass", "", Proof())
        self.num_joined = options.batch
        joined = JoinedCalls(program)
        if options.batch > 1 and joined.most_rows == 1:
            self._run_alone(joined.refusal or "the model takes one row at a time")

    def run(self, records: Sequence[Record]) -> None:
        """Gives each record its outputs or its error.

        Raises:
            UsageError: it is closed.
            NndeployError: what hits every record alike.
        """
        try:
            self._runner.run(records)
        except UsageError as err:
            if self._is_closed or self._runner is self._alone:
                raise
            self._run_alone(str(err))
            self._alone.run([record for record in records if not record.made and record.error is None])

    def _run_alone(self, why: str) -> None:
        """Joins calls no more: together they would only wait for each other."""
        self._say(f"{self._name} runs request by request: {why}")
        self._runner, self.num_joined = self._alone, 1

    def close(self) -> None:
        """Waits for calls that run, then closes the program."""
        self._is_closed = True
        self.meanwhile.close()
        self._program.close()


def check_goldens(program: Program) -> None:
    """Runs the goldens of a program.

    Raises:
        CheckError: an output is not what it should be, or there are none.
    """
    verdicts = golden_verdicts(program)
    wrong = [verdict for verdict in verdicts if not verdict.comparison.ok]
    if wrong:
        what = f"{len(wrong)} of {len(verdicts)} outputs of its goldens differ on this machine"
        raise CheckError(what, hint="nndeploy verify says which")
    if not verdicts:
        what = "it contains no goldens, so its results cannot be checked on this machine"
        raise CheckError(what, hint="compile --samples stores some; --no-check serves it anyway")
