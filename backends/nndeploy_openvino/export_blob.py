# SPDX-License-Identifier: Apache-2.0
"""`python -m nndeploy_openvino.export_blob FOLDER PRECISION`: compiles the IR there, leaves the blob or a reason.

A process of its own, so that the blob depends on the IR alone (see `nndeploy_openvino.build`).
"""

import sys
from pathlib import Path

from nndeploy_openvino.files import BLOB_FILE, GRAPH_FILE, REASON_FILE, WEIGHTS_FILE
from nndeploy_openvino.library import DEVICE, configuration, core
from nndeploy_openvino.reason import reason_of


def main(folder: Path, precision: str) -> None:
    """Writes the blob, or why there is none."""
    try:
        model = core().read_model(str(folder / GRAPH_FILE), str(folder / WEIGHTS_FILE))
        blob = core().compile_model(model, DEVICE, configuration(None, precision)).export_model()
    except Exception as err:  # the library's way to say no has many classes
        (folder / REASON_FILE).write_text(reason_of(err), encoding="utf-8")
        return
    (folder / BLOB_FILE).write_bytes(blob.getbuffer())


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
