"""The command line: `outbox-dev <part> <command>`, `outbox-dev status`, `outbox-dev down`."""

import sys
from importlib import import_module

import typer

from outbox_dev.parts import Part
from outbox_dev.progress import SetupError, say

# Modules with an attribute `part`, in the order in which `down` ends them. They
# import what is heavy (drivers, clients) only when it is used.
PART_MODULES = (
    "outbox_dev.demo.cli",
    "outbox_dev.kubernetes.cluster_cli",
    "outbox_dev.kubernetes.control_plane_cli",
    "outbox_dev.images",
    "outbox_dev.kafka_cli",
    "outbox_dev.mongo_cli",
)


def load_parts() -> list[Part]:
    """Return all parts of the local environment, in the order they are taken down."""
    parts: list[Part] = [import_module(name).part for name in PART_MODULES]
    return parts


def build_app() -> typer.Typer:
    """Return the whole command line."""
    app = typer.Typer(
        name="outbox-dev",
        help="Real MongoDB, Kafka and Kubernetes on this machine, for demo, tests and benchmarks.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    parts = load_parts()
    for part in parts:
        app.add_typer(part.app, name=None if part.top_level else part.name)

    @app.command()
    def status() -> None:
        """Show what runs: addresses and process ids."""
        for part in parts:
            lines = part.status()
            print(f"{part.name}: {'' if lines else 'not running'}".rstrip())
            for line in lines:
                print(f"  {line}")

    @app.command()
    def down() -> None:
        """End everything that this checkout started, also after a crash."""
        failed = False
        for part in parts:
            # One part that cannot be ended must not keep the others alive.
            try:
                part.down()
            except (OSError, SetupError, TimeoutError) as error:
                failed = True
                say(f"error: {part.name}: {error}")
        if failed:
            raise typer.Exit(1)

    return app


def main() -> None:
    """Run the command line; a `SetupError` is shown as a message, not as a stack trace."""
    try:
        build_app()()
    except SetupError as error:
        say(f"error: {error}")
        sys.exit(1)
