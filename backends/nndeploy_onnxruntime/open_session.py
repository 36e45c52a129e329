# SPDX-License-Identifier: Apache-2.0
"""Artifact -> running session: the run half of the backend; it loads onnxruntime and numpy, never onnx.

The model passes the gate that models pass before a compile: it may come from anybody. Weights are in memory once
(`given_weights.py`). Where runs are to be paced, the model as it was optimised for this CPU is kept, so that points can
be put into it.
"""

from collections.abc import Mapping
from typing import Any

from nndeploy.backend_kit.onnx_member import check_member
from nndeploy.errors import BundleError, UnavailableError
from nndeploy.files.held_folder import HeldFolder
from nndeploy.files.onnx_external_data import check_names_no_file
from nndeploy.plugin.interface import OpenOptions, Session
from nndeploy_onnxruntime.given_weights import GivenWeights
from nndeploy_onnxruntime.library import inference_session, onnxruntime, session_options
from nndeploy_onnxruntime.lost_numbers import CheckedSession, numbers_lost
from nndeploy_onnxruntime.session import session_over

MODEL_FILE = "model.onnx"

_ADDRESS_MARK = b"_ORT_MEM_ADDR_"


def open_session(files: Mapping[str, memoryview], options: OpenOptions) -> Session:
    """Returns a session over the files of an artifact; they must stay as long as it lives.

    Raises:
        UnavailableError: onnxruntime, an operator library or the device is not here.
        BundleError: the artifact has no model, or the model asks for memory of ours.
        PolicyError: the model names a file outside of the artifact.
    """
    if options.device != "cpu":
        raise UnavailableError(f"onnxruntime runs on the CPU here, not on {options.device!r}")
    if MODEL_FILE not in files:
        raise BundleError(f"the artifact has no {MODEL_FILE}")
    model = bytes(files[MODEL_FILE])
    if _ADDRESS_MARK in model:
        raise BundleError("the model holds an address in memory")
    weights = GivenWeights(files)
    check_names_no_file(model, weights.names)
    check_member(MODEL_FILE, model, weights.num_bytes)
    weights.lend(model)
    if not options.pace:
        session = inference_session(model, _options(options, weights))
        lost = numbers_lost(model, session)
        opened = session_over(session, weights.let_go())
        return CheckedSession(opened, lost) if lost.names else opened
    from nndeploy_onnxruntime.paced_session import PacedSession

    with HeldFolder("pace") as folder:
        file = folder / MODEL_FILE
        wanted = _options(options, weights)
        wanted.optimized_model_filepath = str(file)
        try:
            session, optimised = inference_session(model, wanted), file.read_bytes()
        except Exception:  # a model beyond 2 GiB cannot be written once more; any other reason comes again
            session, optimised = inference_session(model, _options(options, weights)), None
    is_fixed = all(isinstance(size, int) for value in session.get_inputs() for size in value.shape)
    whole, lost = session_over(session, weights.let_go()), numbers_lost(model, session)
    return PacedSession(whole, optimised, options, has_fixed_shapes=is_fixed, lost=lost)


def _options(options: OpenOptions, weights: GivenWeights) -> Any:
    wanted = session_options(options.threads, options.custom_op_libraries)
    wanted.graph_optimization_level = onnxruntime().GraphOptimizationLevel.ORT_ENABLE_ALL
    weights.add_to(wanted)
    return wanted
