"""The command line of the order service."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from pymongo import MongoClient
from pymongo.errors import PyMongoError

from order_service.journal import Journal
from order_service.orders import Orders
from order_service.writers import Plan, Progress, write

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

PROGRESS_SECONDS = 2.0


@app.command()
def main(
    *,
    uri: Annotated[str, typer.Option(envvar="MONGODB_URI", help="MongoDB connection string, of a replica set.")],
    database: Annotated[str, typer.Option(help="Database.")] = "shop",
    collection: Annotated[str, typer.Option(help="Collection of the orders.")] = "orders",
    outbox: Annotated[str, typer.Option(help="Collection of the events.")] = "outbox",
    transactions: Annotated[int, typer.Option(min=0, help="Transactions to commit; 0: until stopped.")] = 1000,
    writers: Annotated[int, typer.Option(min=1, help="Threads that write at the same time.")] = 8,
    aggregates: Annotated[int, typer.Option(min=1, help="Different orders.")] = 100,
    min_events: Annotated[int, typer.Option(min=1, help="Fewest events of a transaction.")] = 1,
    max_events: Annotated[int, typer.Option(min=1, help="Most events of a transaction.")] = 5,
    rate: Annotated[float | None, typer.Option(min=0.001, help="Transactions a second at most.")] = None,
    aborts: Annotated[float, typer.Option(min=0, max=1, help="Share of transactions aborted on purpose.")] = 0.05,
    seed: Annotated[int, typer.Option(help="Seed of the choice of orders and numbers of events.")] = 1,
    journal: Annotated[Path | None, typer.Option(help="File to append what was committed to, as JSON lines.")] = None,
) -> None:
    """Change orders and write events in transactions; Ctrl-C or SIGTERM ends after the transactions under way."""
    if min_events > max_events:
        raise typer.BadParameter("--min-events is more than --max-events")
    plan = Plan(transactions or None, writers, aggregates, (min_events, max_events), aborts, rate, seed)
    stop = threading.Event()
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, lambda *_: stop.set())
    progress, started = Progress(), time.monotonic()
    client: MongoClient[dict[str, Any]] = MongoClient(uri, appname="order-service")
    try:
        with client, nullcontext() if journal is None else Journal(journal) as book, _reporting(progress, started):
            write(Orders(client[database], collection, outbox), plan, progress, stop, book)
    except PyMongoError as error:
        typer.echo(f"MongoDB: {error}", err=True)
        raise typer.Exit(1) from error
    finally:
        typer.echo(f"{_counts(progress, started)}; done")


@contextmanager
def _reporting(progress: Progress, started: float) -> Iterator[None]:
    """Print the counts every few seconds while the block runs."""
    over = threading.Event()

    def report() -> None:
        while not over.wait(PROGRESS_SECONDS):
            typer.echo(_counts(progress, started))

    reporter = threading.Thread(target=report, daemon=True)
    reporter.start()
    try:
        yield
    finally:
        over.set()
        reporter.join()


def _counts(progress: Progress, started: float) -> str:
    seconds = time.monotonic() - started
    return (
        f"{progress.transactions:,} transactions committed with {progress.events:,} events, "
        f"{progress.aborted:,} aborted on purpose, {progress.transactions / max(seconds, 0.001):,.0f}/s"
    )
