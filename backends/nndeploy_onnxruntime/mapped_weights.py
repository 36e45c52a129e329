# SPDX-License-Identifier: Apache-2.0
"""Weights that the compile put into a file because one protobuf message cannot hold them: used where they are mapped.

For the compile half alone: a model of a bundle names no file (`open_session.py`).
"""

import mmap
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import onnx

from nndeploy.errors import BuildRefusedError
from nndeploy.files.file_content import file_map, letting_go_of_pages
from nndeploy.files.held_folder import PREFIX, SUFFIX
from nndeploy.files.onnx_external_data import named_files
from nndeploy_onnxruntime.library import inference_session

_ALIGNMENT = 4096
_IN_PLACE = "session.use_external_initializer_file_buffers_directly"


def session_with_weights(model: bytes, options: Any) -> tuple[list[mmap.mmap], Any]:
    """Returns the files that a model's weights lie in, and a session over it: they must stay as long as it.

    `options` are for this session alone.

    Raises:
        BuildRefusedError: the model names another file than one of the compile's own.
    """
    names = named_files(model)
    maps = [_mapped(name) for name in names]
    if names:
        options.add_session_config_entry(_IN_PLACE, "1")
        options.add_external_initializers_from_files_in_memory(names, maps, [len(data) for data in maps])
    with letting_go_of_pages() if names else nullcontext():
        return maps, inference_session(model, options)  # who forgets both forgets the session first


def with_weights_in(model: bytes, folder: Path, file_name: str) -> bytes:
    """Writes the weights that a model names into one file of `folder`; returns the model that names this one instead.

    Such a model goes into a bundle as it is.
    """
    proto = onnx.load_from_string(model)
    sources = {name: memoryview(_mapped(name)) for name in named_files(model)}
    with (folder / file_name).open("wb") as file:
        for tensor in proto.graph.initializer:
            if tensor.data_location != onnx.TensorProto.EXTERNAL:
                continue
            place = {entry.key: entry.value for entry in tensor.external_data}
            begin, length = int(place["offset"]), int(place["length"])
            file.write(bytes(-file.tell() % _ALIGNMENT))
            del tensor.external_data[:]
            for key, value in (("location", file_name), ("offset", file.tell()), ("length", length)):
                tensor.external_data.add(key=key, value=str(value))
            file.write(sources[place["location"]][begin : begin + length])
    return bytes(proto.SerializeToString(deterministic=True))


def _mapped(name: str) -> mmap.mmap:
    folder = Path(name).parent
    if not (folder.is_absolute() and folder.name.startswith(PREFIX) and folder.name.endswith(SUFFIX)):
        raise BuildRefusedError(f"the model reads the file {name!r:.120}, which is none of the compile's own")
    with Path(name).open("rb") as file:
        return file_map(file.fileno())
