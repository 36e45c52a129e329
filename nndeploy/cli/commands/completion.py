# SPDX-License-Identifier: Apache-2.0
"""`nndeploy completion`: the script that lets a shell complete commands, options and their values."""

import click

from nndeploy.cli.help.shell_completion import INSTALLED_BY, script

EXAMPLES = """\b
Examples:
  eval "$(nndeploy completion bash)"          in ~/.bashrc
  eval "$(nndeploy completion zsh)"           in ~/.zshrc, after compinit
  nndeploy completion fish > ~/.config/fish/completions/nndeploy.fish
"""


@click.command("completion", epilog=EXAMPLES)
@click.argument("shell", type=click.Choice(list(INSTALLED_BY)))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for a SHELL.

    It completes commands, options and values. Its first line says where to install it.
    """
    print(script(context.find_root().command, shell), end="")
