# SPDX-License-Identifier: Apache-2.0
"""Whether a bundle may be open in a process that forks others, which then have its weights of it.

A library with threads, or the driver of a GPU, is of no use in a process that was forked after it began; what runs in
processes of its own has its weights there.
"""

from pathlib import Path

from nndeploy.bundle.reader import open_bundle
from nndeploy.plugin.interface import Backend, Forkable, Hardened
from nndeploy.plugin.registry import backend
from nndeploy.runtime.code_policy import files_in, without_code
from nndeploy.runtime.code_trust import is_stranger
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.places import choose_chain
from nndeploy.runtime.select import choose
from nndeploy.target.target import host_target


def unforkable(path: Path, options: LoadOptions) -> list[str]:
    """Returns what of a bundle, opened with these options, no process may have that forks others; nothing is opened.

    It may load libraries and drivers, so who is to fork others asks in a child.

    Raises:
        NndeployError: it cannot be opened at all.
    """
    if options.isolates_always:
        return ["isolated submodels"]
    with open_bundle(path) as bundle:
        isolates = options.isolate == "auto" and is_stranger(bundle)  # all but what is hardened
        manifest = bundle.manifest if options.allow_native_code else without_code(bundle.manifest, files_in(bundle))
        chain = choose_chain(manifest, options)
    if chain.placed or chain.place.gpu:
        return ["places"]
    if host_target().gpus and options.device != "cpu":
        return ["a GPU in this machine"]
    choices = [choose(submodel, options, chain.place.host) for submodel in chain.submodels]
    names = dict.fromkeys(choice.backend for choice in choices)
    return [name for name in names if not name or not is_forkable(backend(name), isolates=isolates)]


def is_forkable(plugin: Backend, *, isolates: bool = False) -> bool:
    """Returns whether sessions of a backend are of use to a process that is forked; `isolates`: if not hardened."""
    return isinstance(plugin, Forkable) and (isinstance(plugin, Hardened) or not isolates)
