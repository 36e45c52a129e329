# SPDX-License-Identifier: Apache-2.0
"""A model as OpenVINO reads it: stored weights stay where they are mapped, and the message has their addresses.

For the compile half alone.

Source: OpenVINO's reader of ONNX knows `*/_ORT_MEM_ADDR_/*`, ONNX Runtime's name of memory: `offset` is an address.
"""

from collections.abc import Sequence
from typing import Any

import onnx
import onnx_ir as ir

from nndeploy.backend_kit.query import bytes_of

_IN_MEMORY = "*/_ORT_MEM_ADDR_/*"


def bytes_with_addresses(model: ir.Model) -> tuple[bytes, Sequence[Any]]:
    """Returns a model's bytes, and the arrays in whose memory weights lie: they must stay as long as what is read.

    Raises:
        BuildRefusedError: what does not lie in a file is larger than 2 GiB.
    """
    proto, arrays = ir.to_proto(model), []
    for tensor in proto.graph.initializer:
        stored = model.graph.initializers[tensor.name].const_value
        if not isinstance(stored, ir.ExternalTensor):
            continue
        del tensor.external_data[:]
        if stored.dtype.bitwidth < 8:  # in memory they are unpacked
            tensor.data_location, tensor.raw_data = onnx.TensorProto.DEFAULT, stored.tobytes()
            continue
        array = stored.numpy()
        arrays.append(array)
        for key, value in (("location", _IN_MEMORY), ("offset", array.ctypes.data), ("length", array.nbytes)):
            tensor.external_data.add(key=key, value=str(value))
    return bytes_of(proto), arrays
