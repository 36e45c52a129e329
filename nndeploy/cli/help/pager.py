# SPDX-License-Identifier: Apache-2.0
"""A page of Markdown on a terminal, through the pager that its user likes (`PAGER`)."""

import contextlib
import os
import shlex
import subprocess
import sys

from rich.markdown import Markdown

from nndeploy.cli.console import console_for

WIDEST = 100
"""Columns of a page; longer lines are hard to read."""


def show_markdown(markdown: str) -> None:
    """Shows a page on standard output, which is a terminal; a short one without the pager."""
    console = console_for(sys.stdout)
    with console.capture() as capture:
        console.print(Markdown(markdown, hyperlinks=False), width=min(console.width, WIDEST))
    _page(capture.get())


def _page(text: str) -> None:
    command = shlex.split(os.environ.get("PAGER", "less"))
    try:
        # Standard output is not descriptor 1 here. F: no pager for what fits; R: escapes; X: the text stays.
        pager = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=sys.stdout.fileno(), env={"LESS": "FRX", **os.environ}
        )
    except (OSError, IndexError):  # there is none, or none is wanted
        print(text, end="")
        return
    with contextlib.suppress(BrokenPipeError):  # the reader has enough
        assert pager.stdin is not None
        with pager.stdin:
            pager.stdin.write(text.encode("utf-8"))
    while True:
        try:
            pager.wait()
        except KeyboardInterrupt:  # is for the pager, which goes on
            continue
        return
