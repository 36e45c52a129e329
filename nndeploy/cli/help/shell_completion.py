# SPDX-License-Identifier: Apache-2.0
"""What a shell asks when the tab key is pressed, and the scripts that ask it: our own for bash and zsh, else click's.

Click's put a blank behind whatever they complete, also behind a folder; the one for bash besides loses words
that hold `:`, `=` or `@`, where bash takes them apart, and does not quote paths. Law: a shell that asks gets an answer
or nothing, never a message, because that would be written into the line that is being typed.
"""

import os
from typing import ClassVar

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)

VARIABLE = "_NNDEPLOY_COMPLETE"
"""What the scripts set, to `SHELL_source` or `SHELL_complete`."""
PROGRAM = "nndeploy"
INSTALLED_BY = {
    "bash": 'in ~/.bashrc: eval "$(nndeploy completion bash)"',
    "zsh": 'in ~/.zshrc, behind compinit: eval "$(nndeploy completion zsh)"',
    "fish": "nndeploy completion fish > ~/.config/fish/completions/nndeploy.fish",
}
"""Shell -> how its script gets there."""

BASH = """\
%(complete_func)s() {
    local kind value
    COMPREPLY=()
    while IFS=, read -r kind value; do
        case $kind in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            path) compopt -o filenames; COMPREPLY+=("$value") ;;
            plain) COMPREPLY+=("$value"); [[ $value == *[=+,/] ]] && compopt -o nospace ;;
        esac
    done < <(COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_WORDBREAKS="$COMP_WORDBREAKS" \
%(complete_var)s=bash_complete "$1" 2>/dev/null)
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

ZSH = """\
#compdef %(prog_name)s
%(complete_func)s() {
    local -a response closed open described
    local kind value about
    response=("${(@f)$(COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) \
%(complete_var)s=zsh_complete ${words[1]} 2>/dev/null)}")
    for kind value about in ${response}; do
        case $kind in
            dir) _path_files -/ ;;
            file) _path_files -f ;;
            plain)
                if [[ $about != "_" ]]; then described+=("$value:$about")
                elif [[ $value == *[=+,/] ]]; then open+=("$value")
                else closed+=("$value"); fi ;;
        esac
    done
    (( $#described )) && _describe -V unsorted described -U
    (( $#closed )) && compadd -U -V unsorted -a closed
    (( $#open )) && compadd -U -S "" -V unsorted -a open
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""
WITHIN_WORDS = ":=@"
"""The characters of our values at which bash takes a word apart."""


class OurZsh(ZshComplete):
    """Completion for zsh, without a blank behind what goes on."""

    source_template: ClassVar[str] = ZSH


class OurBash(BashComplete):
    """Completion for bash 4.4 and later, by the line up to the cursor."""

    source_template: ClassVar[str] = BASH

    def source(self) -> str:
        """Returns the script; the bash that will read it may be another than the one on this path."""
        return ShellComplete.source(self)

    def get_completion_args(self) -> tuple[list[str], str]:
        """Returns the words before the one at the cursor, and that one."""
        words = split_arg_string(os.environ["COMP_LINE"] + "|")  # which also begins a word behind a blank
        return words[1:-1], words[-1].removesuffix("|")

    def complete(self) -> str:
        """Returns a line for each completion: of its word only what stands behind the last place where bash breaks."""
        args, word = self.get_completion_args()
        option = word[: word.find("=") + 1] if word.startswith("--") else ""
        breaks = [one for one in WITHIN_WORDS if one in os.environ.get("COMP_WORDBREAKS", "")]
        cut = 1 + max((word.rfind(one) for one in breaks), default=-1)
        return "\n".join(_line(item, (option + item.value)[cut:]) for item in self.get_completions(args, word))


def _line(item: "CompletionItem[str]", text: str) -> str:
    return f"path,{text.removesuffix('/')}" if item.is_path else f"{item.type},{text}"


def script(command: click.Command, shell: str) -> str:
    """Returns the script by which `shell` completes the command, with a line that says how it is installed."""
    head, rest = "", _asked(command, shell).source()
    if rest.startswith("#compdef"):  # zsh wants that first
        head, _, rest = rest.partition("\n")
    return "\n".join((*filter(None, [head]), f"# {INSTALLED_BY[shell]}", rest))


def answer_shell(command: click.Command, instruction: str) -> int:
    """Prints what a shell asks for, and returns the exit code; what fails is no answer."""
    shell, _, what = instruction.partition("_")
    try:
        asked = _asked(command, shell)
        print(asked.source() if what == "source" else asked.complete())
    except Exception:  # of whatever kind: the person is typing, and cannot be told
        return 1
    return 0


def _asked(command: click.Command, shell: str) -> ShellComplete:
    add_completion_class(OurBash)
    add_completion_class(OurZsh)
    kind = get_completion_class(shell)
    if kind is None:
        raise ValueError(shell)
    return kind(command, {}, PROGRAM, VARIABLE)
