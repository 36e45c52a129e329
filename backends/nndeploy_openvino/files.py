# SPDX-License-Identifier: Apache-2.0
"""The names of an artifact's files."""

GRAPH_FILE = "model.xml"
WEIGHTS_FILE = "model.bin"
BLOB_FILE = "model.blob"
REASON_FILE = "reason.txt"
"""Left in the working folder by a failed export; not part of an artifact."""
