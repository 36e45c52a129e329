# SPDX-License-Identifier: Apache-2.0
"""Where outcomes go: files, lines, tables, images, videos; `run --resume` goes on after the last durable one."""
