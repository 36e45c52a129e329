# SPDX-License-Identifier: Apache-2.0
"""The forms in which CI systems read what a command found: one writer of each for all commands.

junit.py           test cases as JUnit XML
markdown.py        a summary in Markdown, in parts that are cut to fit
step_summary.py    the file in which GitHub gathers the summaries of steps
command_report.py  what one command found, in both forms
annotations.py     errors and warnings as GitHub shows them beside a change

Comes in: names and texts, which may be anybody's. Goes out: text that no reader takes for its own syntax.
"""
