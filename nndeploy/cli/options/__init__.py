# SPDX-License-Identifier: Apache-2.0
"""Options of commands, their types and sections."""
