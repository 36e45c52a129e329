# SPDX-License-Identifier: Apache-2.0
"""Names of the files in an artifact: what `build` writes and `open` reads."""

ENGINE_FILE = "engine.trt"
