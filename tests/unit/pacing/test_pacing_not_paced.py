# SPDX-License-Identifier: Apache-2.0
"""What is not paced: a run is the very call that it would be without pacing, and nothing that paces is loaded."""

import json
import subprocess
import sys
from contextlib import nullcontext
from types import SimpleNamespace

from nndeploy.pacing.run.protocol import NOT_PACED, Part
from nndeploy.pacing.stream.protocol import STREAM_NOT_PACED


def test_a_program_keeps_its_calls_and_steps() -> None:
    def run(values: dict[str, object]) -> dict[str, object]:
        return values

    step = SimpleNamespace(inputs=(), outputs=())
    part = Part(SimpleNamespace(id="0"), step, None, "native", is_on_gpu=False)
    assert NOT_PACED.paced(run) is run
    assert NOT_PACED.place([part], lambda: None, None, lambda: None) == [step]
    assert not NOT_PACED.is_paced
    assert not NOT_PACED.runs_one_by_one


def test_items_of_a_stream_are_let_in_as_they_come() -> None:
    assert STREAM_NOT_PACED.next_begin_ns() == 0
    assert STREAM_NOT_PACED.due(SimpleNamespace(num_runners=2)) == [nullcontext, nullcontext]


def test_a_program_loads_none_of_what_paces() -> None:
    script = (
        "import json, sys, nndeploy.runtime.program;"
        "print(json.dumps([name for name in sys.modules if name.startswith('nndeploy.pacing')]))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert set(json.loads(done.stdout)) == {"nndeploy.pacing", "nndeploy.pacing.run", "nndeploy.pacing.run.protocol"}
