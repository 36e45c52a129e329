# SPDX-License-Identifier: Apache-2.0
"""The border to LoadGen's Python binding: what we use of it, typed, and one test as one blocking call.

LoadGen's callbacks come on the thread that called `run_test` and must not raise. It takes an audit.config from the
current folder unless told otherwise: we tell it otherwise, so a file that happens to lie there changes nothing.

Source: bindings/python_api.cc of mlcommons/inference, LoadGen 6.0.
"""

import ctypes
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

from nndeploy.errors import UnavailableError
from nndeploy.loadgen.answering import Question
from nndeploy.loadgen.settings import Scenario, Settings
from nndeploy.version import install_command

PREFIX = "mlperf_log_"
LOG_NAMES = tuple(PREFIX + name for name in ("summary.txt", "detail.txt", "accuracy.json", "trace.json"))
NO_AUDIT_CONFIG = ""

_SCENARIOS = {
    Scenario.SINGLE_STREAM: "SingleStream",
    Scenario.MULTI_STREAM: "MultiStream",
    Scenario.OFFLINE: "Offline",
    Scenario.SERVER: "Server",
}


def loadgen() -> ModuleType:
    """Returns LoadGen's module.

    Raises:
        UnavailableError: it is not installed, or does not load.
    """
    try:
        return importlib.import_module("mlperf_loadgen")
    except ImportError as err:
        raise UnavailableError(f"--scenario needs MLPerf's LoadGen: {err}", hint=install_command("loadgen")) from err


def run_test(settings: Settings, num_samples: int, issue: Callable[[Sequence[Question]], None], folder: Path) -> None:
    """Runs a whole test; its logs are in `folder` when it returns. One at a time in a process."""
    module = loadgen()

    def issue_query(samples: Sequence[object]) -> None:
        issue([Question(sample.id, sample.index) for sample in samples])  # type: ignore[attr-defined]

    system = module.ConstructSUT(issue_query, _nothing_waits)
    library = module.ConstructQSL(num_samples, num_samples, _all_in_memory, _all_in_memory)
    try:
        module.StartTestWithLogSettings(
            system, library, _test_settings(module, settings), _log_settings(module, folder), NO_AUDIT_CONFIG
        )
    finally:
        module.DestroyQSL(library)
        module.DestroySUT(system)


def complete(answers: Sequence[tuple[Question, bytes]]) -> None:
    """Hands answers over. LoadGen copies what it keeps before this returns; until then the bytes are held here."""
    module = loadgen()
    module.QuerySamplesComplete(
        [module.QuerySampleResponse(question.id, _address(data), len(data)) for question, data in answers]
    )


def _address(data: bytes) -> int:
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0 if data else 0


def _nothing_waits() -> None:
    """Does nothing: no sample is held back for a fuller batch, so there is nothing to flush."""


def _all_in_memory(indices: Sequence[int]) -> None:
    """Does nothing: all samples are in memory from before the test until after it."""


def _test_settings(module: ModuleType, settings: Settings) -> object:
    """Returns the settings as LoadGen's own; seeds are its defaults, so the same settings ask the same questions."""
    made = module.TestSettings()
    made.scenario = getattr(module.TestScenario, _SCENARIOS[settings.scenario])
    made.mode = module.TestMode.AccuracyOnly if settings.accuracy else module.TestMode.PerformanceOnly
    made.min_duration_ms = round(settings.seconds * 1000)
    made.min_query_count = settings.min_queries
    made.single_stream_expected_latency_ns = made.multi_stream_expected_latency_ns = max(1, int(settings.query_s * 1e9))
    made.single_stream_target_latency_percentile = settings.percentile / 100
    made.multi_stream_target_latency_percentile = settings.percentile / 100
    made.multi_stream_samples_per_query = settings.samples_per_query
    made.server_target_latency_percentile = settings.percentile / 100
    made.server_target_latency_ns = round(settings.target_latency_ms * 1e6)
    made.server_target_qps = settings.target_qps
    made.offline_expected_qps = settings.target_qps
    return made


def _log_settings(module: ModuleType, folder: Path) -> object:
    made = module.LogSettings()
    made.log_output.outdir = str(folder)
    made.log_output.prefix = PREFIX
    made.log_output.copy_summary_to_stdout = False
    made.log_output.copy_detail_to_stdout = False
    made.enable_trace = False  # a trace of every sample would disturb what is measured
    return made
