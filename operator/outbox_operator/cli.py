"""The command line."""

import asyncio
import os
import socket
import sys
from typing import Annotated

import structlog
import typer

from outbox_api.quantities import parse_duration
from outbox_operator import logs
from outbox_operator.kube.errors import KubeError
from outbox_operator.leading import NotLeaderError
from outbox_operator.schema_check import SchemaError
from outbox_operator.settings import LeaseSettings, RelayDefaults, Settings

_EXIT_CODES = {SchemaError: 3, NotLeaderError: 70}

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Kubernetes operator for OutboxRelay resources.")


@app.callback()
def _root() -> None:
    """Kubernetes operator for OutboxRelay resources."""


@app.command()
def run(  # noqa: PLR0917 - typer reads the options from the signature
    relay_image: Annotated[
        str, typer.Option(envvar="RELAY_IMAGE", help="Image of the relays whose resource names none.")
    ],
    namespace: Annotated[
        list[str] | None,
        typer.Option(envvar="NAMESPACES", help="Serve only this namespace; may be repeated. Default: all."),
    ] = None,
    relay_image_pull_policy: Annotated[
        str | None, typer.Option(envvar="RELAY_IMAGE_PULL_POLICY", help="Always, IfNotPresent or Never.")
    ] = None,
    relay_image_pull_secret: Annotated[
        list[str] | None,
        typer.Option(envvar="RELAY_IMAGE_PULL_SECRETS", help="Pull secret of the relays' pods; may be repeated."),
    ] = None,
    lease_namespace: Annotated[
        str | None,
        typer.Option(envvar="LEASE_NAMESPACE", help="Namespace of the operator's Lease. Default: no leader election."),
    ] = None,
    lease_name: Annotated[str, typer.Option(envvar="LEASE_NAME", help="Name of the Lease.")] = "outbox-relay-operator",
    identity: Annotated[
        str | None, typer.Option(envvar="POD_NAME", help="Who this process is in the Lease. Default: the host's name.")
    ] = None,
    resync: Annotated[
        str, typer.Option(envvar="RESYNC", help="Time after which each resource is looked at again.")
    ] = "10m",
    concurrency: Annotated[
        int, typer.Option(envvar="CONCURRENCY", min=1, max=64, help="Resources in work at once.")
    ] = 8,
    port: Annotated[
        int, typer.Option(envvar="PORT", min=0, max=65535, help="Port of /livez, /readyz and /metrics; 0: any.")
    ] = 8080,
    log_level: Annotated[str, typer.Option(envvar="LOG_LEVEL", help="DEBUG, INFO, WARNING or ERROR.")] = "INFO",
) -> None:
    """Serve OutboxRelay resources until SIGTERM."""
    logs.configure(log_level.upper())
    log = structlog.get_logger()
    lease = None
    if lease_namespace is not None:
        lease = LeaseSettings(lease_namespace, lease_name, identity or f"{socket.gethostname()}-{os.getpid()}")
    settings = Settings(
        namespaces=tuple(namespace or ()),
        relay=RelayDefaults(relay_image, relay_image_pull_policy, tuple(relay_image_pull_secret or ())),
        lease=lease,
        resync=_seconds("--resync", resync),
        concurrency=concurrency,
        port=port,
    )
    # Heavy imports last, so that --help answers at once.
    from outbox_operator import app as operator

    try:
        asyncio.run(operator.run(settings))
        code = 0
    except* (SchemaError, NotLeaderError, KubeError, operator.WatchEndedError) as problems:
        # What happened and what to do is in the message; a stack trace would only hide it.
        for problem in problems.exceptions:
            log.error("Ended", problem=str(problem))  # noqa: TRY400
        code = next(_EXIT_CODES.get(type(problem), 1) for problem in problems.exceptions)
    sys.exit(code)


def _seconds(flag: str, text: str) -> float:
    try:
        return parse_duration(text).total_seconds()
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=flag) from error
