# SPDX-License-Identifier: Apache-2.0
"""ImageDecoder by our own reader of images: its formats alone, within its limit of pixels, as they are stored.

ONNX's evaluator opens whatever Pillow knows, PostScript too, for which that starts a program. The formats that the
specification lists besides (JPEG 2000, PNM) are an error of the input, as are damaged images, for which it asks for an
empty matrix.

Source: ONNX operator ImageDecoder (20).
"""

import numpy as np

from nndeploy.files.image_files import pixels_from_bytes
from nndeploy_reference.operator_table import Array, Node, operator


@operator("ImageDecoder", since=20)
def _image_decoder(node: Node, encoded: Array) -> Array:
    if node.pixel_format == "Grayscale":
        return pixels_from_bytes(bytes(encoded), "L", upright=False)[:, :, np.newaxis]
    pixels = pixels_from_bytes(bytes(encoded), upright=False)
    return pixels[:, :, ::-1] if node.pixel_format == "BGR" else pixels
