# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a compile whatever becomes of the model, found before a process is started for it.

Comes in: what the command was given. Goes out: nothing, or a UsageError. Law: no library that parses models is loaded.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nndeploy.compiler.options import READ_BY_CHILD, CompileOptions
from nndeploy.errors import NndeployError, UsageError
from nndeploy.files.whole_files import read_regular
from nndeploy.frontend.declared_inputs import check_shape_names, declared_inputs
from nndeploy.frontend.shape_texts import parse_trtexec_shapes
from nndeploy.options.described import options_from
from nndeploy.plugin.backend_names import PLUGINS


def check_early(source: Path, given: Mapping[str, Any]) -> CompileOptions:
    """Checks names of backends, and `--shape` against the inputs that the model file declares.

    Returns the options, without those that the child reads.

    Raises:
        UsageError: a backend is not installed, or the model has no such input, or of another rank.
        NndeployError: an option has no meaning.
    """
    options = options_from(CompileOptions, {name: text for name, text in given.items() if name not in READ_BY_CHILD})
    if options.backends == ():
        raise UsageError("--backends names none", hint="for example native,onnxruntime")
    for name in (*(options.backends or ()), *options.without, *(name for _, name in options.pins), *options.require):
        PLUGINS.check(name)
    specs = {
        **parse_trtexec_shapes(options.min_shapes, options.opt_shapes, options.max_shapes), **options.shapes
    }  # fmt: skip
    if not specs:
        return options
    try:
        inputs = declared_inputs(read_regular(source))
    except NndeployError:  # the compile says better what is wrong with the model
        return options
    try:
        check_shape_names(specs, inputs)
    except UsageError as err:
        raise err.within(str(source)) from None
    return options
