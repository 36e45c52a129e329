# SPDX-License-Identifier: Apache-2.0
"""The commands: what each takes, calls and prints."""
