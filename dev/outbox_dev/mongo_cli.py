"""`outbox-dev mongo …`."""

from pathlib import Path
from typing import Annotated

import typer

from outbox_dev.mongo import MongoDB
from outbox_dev.parts import Part
from outbox_dev.processes import Processes
from outbox_dev.progress import step
from outbox_dev.services import Service

app = typer.Typer(help="MongoDB: a replica set or a standalone server (a second).", no_args_is_help=True)
service = Service("mongo")


@app.command()
def up(
    *,
    nodes: Annotated[int, typer.Option(min=1, max=7, help="Servers in the replica set.")] = 1,
    standalone: Annotated[bool, typer.Option(help="No replica set, so no change streams.")] = False,
    auth: Annotated[bool, typer.Option(help="Require passwords.")] = False,
    host: Annotated[str, typer.Option(help="Address to listen on, besides loopback.")] = "127.0.0.1",
    oplog_size: Annotated[int | None, typer.Option(min=1, help="Size of the oplog in MB.")] = None,
) -> None:
    """Start it unless it runs, and print its connection string."""

    def start(processes: Processes, data: Path) -> str:
        with step("Starting MongoDB"):
            return MongoDB.start(
                processes, data, nodes, standalone=standalone, host=host, auth=auth, oplog_size_mb=oplog_size
            ).uri

    service.up(start)


@app.command()
def down() -> None:
    """End it and remove its data."""
    service.down()


part = Part(name="mongo", app=app, status=service.status, down=service.down)
