# SPDX-License-Identifier: Apache-2.0
"""What backends for NVIDIA GPUs have in common in their answer to `probe`.

A backend says what it lacks to build for the target's GPUs and to run on this machine's; whether there are GPUs is
found out here. Law: where a GPU is what is missing, the answer says so and has no hint.
"""

from typing import NamedTuple

from nndeploy.cuda.facts import NoCuda, why_no_cuda
from nndeploy.plugin.interface import Probe
from nndeploy.target.target import Target

HARDWARE = "NVIDIA GPU"
NO_GPU = "the target has no NVIDIA GPU"


class Lack(NamedTuple):
    """What is missing, one line, "" where nothing is; and what to type or to install."""

    reason: str = ""
    hint: str = ""


NOTHING = Lack()


def gpu_probe(target: Target, version: str, to_build: Lack = NOTHING, to_run: Lack = NOTHING) -> Probe:
    """Returns what a backend of this version can do here for a target, given what it lacks besides a GPU."""
    no_cuda = why_no_cuda()
    if not target.gpus:
        return _without_gpus(target, version, no_cuda)
    can_build, can_run = not to_build.reason, not to_run.reason and no_cuda is None
    lack = to_build if to_build.reason else to_run
    if lack.reason or no_cuda is None:
        return Probe(can_build, can_run, version, lack.reason, lack.hint)
    return _without_cuda(no_cuda, version, can_build=can_build)


def _without_gpus(target: Target, version: str, no_cuda: NoCuda | None) -> Probe:
    if target.is_host and no_cuda is not None:
        return _without_cuda(no_cuda, version, can_build=False)
    return Probe(False, False, version, NO_GPU, absent_hardware=HARDWARE)


def _without_cuda(why: NoCuda, version: str, *, can_build: bool) -> Probe:
    return Probe(can_build, False, version, why.reason, why.hint, HARDWARE if why.lacks_gpu else "")
