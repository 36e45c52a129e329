# SPDX-License-Identifier: Apache-2.0
"""Where items come from: the texts of `run --input`, lines of files, frames of videos."""
