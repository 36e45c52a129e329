# SPDX-License-Identifier: Apache-2.0
"""A session that passes points: by our operator in the model, else by being cut into segments, else only at its end.

Which of these it is, is found out by trying on a sample, and told. Law: where no way works the session runs as it is.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from nndeploy.plugin.interface import OpenOptions, Session
from nndeploy.plugin.pacing import PacePoint, Pacer, Wanted
from nndeploy.values.types import Value
from nndeploy_onnxruntime.library import inference_session, onnxruntime, session_options
from nndeploy_onnxruntime.lost_numbers import NumbersLost
from nndeploy_onnxruntime.model_fields import values_until
from nndeploy_onnxruntime.pace_operator import operator_problem
from nndeploy_onnxruntime.pace_segments import in_segments
from nndeploy_onnxruntime.pace_trials import NoPointsError, Pointed, Trial
from nndeploy_onnxruntime.placed_points import with_placed_points

_WHOLE = "all of it"


class PacedSession:
    """A session that passes no point until `pace` puts some into it."""

    def __init__(
        self,
        whole: Session,
        optimised: bytes | None,
        options: OpenOptions,
        *,
        has_fixed_shapes: bool,
        lost: NumbersLost,
    ) -> None:
        """Takes over a session without points; `optimised` is its model as it is run, None where that is not known.

        `lost` are the numbers that are left to another session.
        """
        self.pace_note = ""
        self._session, self._optimised, self._options = whole, optimised, options
        self._has_fixed_shapes, self._lost = has_fixed_shapes, lost
        self._pass_last: Callable[[], None] | None = None

    def pace(self, pacer: Pacer, sample: Mapping[str, Value] | None, wanted: Wanted | None = None) -> list[PacePoint]:
        """Puts points where they are wanted, or cost little; returns them. The operator finds the run by itself."""
        if self._optimised is None:
            self.pace_note = "one operator: its model is too large to be written again"
            return []
        found = self._pointed(self._optimised, pacer, sample, wanted)
        if found.session is not self._session:
            self._session.close()
        values = values_until(self._optimised, found.names, found.running)
        self._session, self.pace_note, self._optimised = found.session, found.note, None
        self._pass_last = partial(pacer.point, len(found.names) - 1)
        return [PacePoint(name, is_cut=False, values=some) for name, some in zip(found.names, values, strict=True)]

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the value of every output by name.

        Raises:
            OtherVariantError: an input holds a NaN or an infinity, which the model loses.
        """
        self._lost.check(inputs)
        results = self._session.run(inputs)
        if self._pass_last is not None:
            self._pass_last()
        return results

    def close(self) -> None:
        """Frees the library's sessions; a second call does nothing."""
        self._session.close()

    def _pointed(
        self, optimised: bytes, pacer: Pacer, sample: Mapping[str, Value] | None, wanted: Wanted | None
    ) -> Pointed:
        trial = Trial(self._session, pacer, sample, has_fixed_shapes=self._has_fixed_shapes)
        reason = operator_problem(pacer)
        if not reason:

            def opened(model: bytes) -> Any:
                return self._opened(model, pacer.path)

            try:
                return with_placed_points(optimised, opened, trial, wanted)
            except NoPointsError as err:
                reason = str(err)
        try:
            found = in_segments(optimised, self._opened, trial, wanted)
        except NoPointsError as err:
            return Pointed(self._session, [_WHOLE], f"one operator: {reason}; not cut: {err}")
        return replace(found, note=f"{found.note}: {reason}")

    def _opened(self, model: bytes, *libraries: str, profile: str = "") -> Any:
        """Returns the library's session over a model that is run as it is; with `profile` it writes what it does."""
        wanted = session_options(self._options.threads, (*self._options.custom_op_libraries, *libraries))
        wanted.add_session_config_entry("session.intra_op.allow_spinning", "0")  # nor while another thread sleeps
        wanted.graph_optimization_level = onnxruntime().GraphOptimizationLevel.ORT_DISABLE_ALL
        if profile:
            wanted.enable_profiling, wanted.profile_file_prefix = True, profile
        return inference_session(model, wanted)
