"""The command line: `outbox-relay run` and `outbox-relay preview`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from outbox_relay.config import ConfigurationError, load_routed_spec
from outbox_relay.preview import BadLine, preview
from outbox_relay.render import Renderer

EXIT_CONFIGURATION = 2
EXIT_BAD_INPUT = 1

app = typer.Typer(
    name="outbox-relay",
    help="Moves committed outbox events from MongoDB to Kafka.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

ConfigOption = Annotated[
    Path, typer.Option("--config", metavar="FILE", help="The configuration, in YAML.", show_default=False)
]


@app.command("run")
def run_command(
    config: ConfigOption,
    shard: Annotated[int, typer.Option("--shard", min=0, help="Index of the shard that this process serves.")] = 0,
) -> None:
    """Run the relay until it is told to stop (SIGTERM or Ctrl-C)."""
    from outbox_relay.app import run  # the drivers of MongoDB, Kafka and Kubernetes are loaded only where they are used

    try:
        code = run(config, shard)
    except ConfigurationError as error:
        raise _unusable(error) from error
    raise typer.Exit(code)


@app.command("preview")
def preview_command(config: ConfigOption) -> None:
    """Print the record that each document becomes; nothing is sent.

    Documents come from standard input, in Extended JSON, one a line. FILE is a relay configuration,
    or manifests with one OutboxRelay. A line that is no document is reported; the exit code is then 1.
    """
    try:
        renderer = Renderer.from_spec(load_routed_spec(config))
    except ConfigurationError as error:
        raise _unusable(error) from error
    failed = False
    for outcome in preview(sys.stdin.buffer, renderer):
        if isinstance(outcome, BadLine):
            failed = True
            typer.echo(f"line {outcome.number}: {outcome.problem}", err=True)
        else:
            typer.echo(outcome)
    raise typer.Exit(EXIT_BAD_INPUT if failed else 0)


def _unusable(error: ConfigurationError) -> typer.Exit:
    for problem in error.problems:
        typer.echo(str(problem), err=True)
    return typer.Exit(EXIT_CONFIGURATION)
