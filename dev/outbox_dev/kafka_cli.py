"""`outbox-dev kafka …`."""

from pathlib import Path
from typing import Annotated

import typer

from outbox_dev.kafka import Kafka
from outbox_dev.parts import Part
from outbox_dev.processes import Processes
from outbox_dev.progress import step
from outbox_dev.services import Service

app = typer.Typer(help="Kafka: one or several brokers (five seconds).", no_args_is_help=True)
service = Service("kafka")


@app.command()
def up(
    *,
    brokers: Annotated[int, typer.Option(min=1, max=5, help="How many brokers.")] = 1,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    auto_create_topics: Annotated[bool, typer.Option(help="Topics appear when somebody asks for them.")] = False,
) -> None:
    """Start it unless it runs, and print its bootstrap servers."""

    def start(processes: Processes, data: Path) -> str:
        with step("Starting Kafka"):
            kafka = Kafka.start(processes, data, brokers, host=host, auto_create_topics=auto_create_topics)
            return kafka.bootstrap_servers

    service.up(start)


@app.command()
def down() -> None:
    """End it and remove its data."""
    service.down()


part = Part(name="kafka", app=app, status=service.status, down=service.down)
