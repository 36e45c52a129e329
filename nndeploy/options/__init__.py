# SPDX-License-Identifier: Apache-2.0
"""How options are described: once, as fields of dataclasses, for Python, the command line and its help alike."""
