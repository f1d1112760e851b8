"""Real MongoDB: a standalone server, or a replica set of one or more nodes."""

import base64
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

from outbox_dev.mongod import mongod
from outbox_dev.ports import free_port
from outbox_dev.processes import Processes
from outbox_dev.server import START_TIMEOUT_SECONDS, Server

if TYPE_CHECKING:
    from pymongo import MongoClient

REPLICA_SET = "rs0"
ADMIN_USER = "admin"
_POLL_SECONDS = 0.02

# Fail-over within about two seconds instead of ten, so that tests of it are short.
_SETTINGS = {"electionTimeoutMillis": 2000, "heartbeatIntervalMillis": 500}


@dataclass
class MongoDB:
    """A running standalone server or replica set.

    Attributes:
        uri: connection string; of the administrator when `auth` is on.
        nodes: its servers; the first one becomes the first primary.
        replica_set: its name, or None for a standalone server.
        password: the administrator's password when `auth` is on.
    """

    uri: str
    nodes: list[Server]
    replica_set: str | None
    password: str | None = field(default=None, repr=False)

    @classmethod
    def start(
        cls,
        processes: Processes,
        dir: Path,  # noqa: A002 - the shortest honest name
        nodes: int = 1,
        *,
        standalone: bool = False,
        host: str = "127.0.0.1",
        auth: bool = False,
        oplog_size_mb: int | None = None,
        name: str = "mongo",
        parameters: Mapping[str, object] | None = None,
    ) -> "MongoDB":
        """Start it and wait until it takes writes on its primary, with every node in step.

        Args:
            processes: where the servers are recorded.
            dir: empty or new folder for the data.
            nodes: number of servers in the replica set.
            standalone: one server without a replica set (no change streams).
            host: address to listen on, besides loopback, and to be found under.
            auth: require passwords; `uri` is then the administrator's.
            oplog_size_mb: size of the oplog in MB; a small one rolls over in seconds.
            name: what the processes are called: `<name>-0` and so on.
            parameters: further server parameters, for example `ttlMonitorSleepSecs`.

        Raises:
            SetupError: there is no mongod for this machine.
            TimeoutError: it did not come up within two minutes.
        """
        if standalone and nodes != 1:
            raise ValueError("a standalone server is one node")
        program = mongod()
        dir.mkdir(parents=True, exist_ok=True)
        key_file = _write_key_file(dir) if auth else None
        members = []
        for index in range(nodes):
            data = dir / f"{name}-{index}"
            data.mkdir()
            port = free_port(host)
            argv = [str(program), "--dbpath", str(data), "--port", str(port)]
            argv += ["--bind_ip", ",".join(dict.fromkeys(["127.0.0.1", host]))]
            argv += [] if standalone else ["--replSet", REPLICA_SET]
            argv += ["--keyFile", str(key_file)] if key_file and not standalone else []
            argv += ["--auth"] if auth else []
            argv += ["--oplogSize", str(oplog_size_mb)] if oplog_size_mb else []
            argv += _economy(parameters or {})
            members.append(Server(f"{name}-{index}", host, port, argv, processes))
        for node in members:
            node.launch()
        for node in members:
            node.wait_ready()
        password = secrets.token_urlsafe(12) if auth else None
        replica_set = None if standalone else REPLICA_SET
        mongo = cls("", members, replica_set, password)
        mongo.uri = mongo.uri_for(ADMIN_USER, password) if password else mongo.uri_for()
        mongo._set_up()
        for node in members if replica_set else []:
            node.ready = _in_a_role(alone=nodes == 1)
        return mongo

    def heal(self) -> None:
        """Undo what a test did to the servers: thaw the frozen, start the dead, wait for a primary."""
        for server in self.nodes:
            server.heal()
        self.primary()

    def stop(self) -> None:
        """End all servers; the data stay."""
        for node in self.nodes:
            node.stop()

    def client(self, **options: Any) -> "MongoClient[dict[str, Any]]":
        """Return a new client; close it, for example by `with`."""
        from pymongo import MongoClient

        return MongoClient(self.uri, **{"serverSelectionTimeoutMS": 30_000, **options})

    def uri_for(self, user: str | None = None, password: str | None = None) -> str:
        """Return a connection string for a user, or for nobody."""
        who = f"{quote_plus(user)}:{quote_plus(password or '')}@" if user else ""
        hosts = ",".join(node.address for node in self.nodes)
        options = [f"replicaSet={self.replica_set}"] if self.replica_set else []
        options += ["authSource=admin"] if user else []
        return f"mongodb://{who}{hosts}/?{'&'.join(options)}".removesuffix("?")

    def add_user(self, user: str, password: str, roles: list[Any]) -> str:
        """Create a user in `admin` and return its connection string.

        Args:
            user: user name.
            password: password (SCRAM).
            roles: as in MongoDB's createUser, for example
                `[{"role": "readWrite", "db": "shop"}]`.
        """
        with self.client() as client:
            client.admin.command("createUser", user, pwd=password, roles=roles)
        return self.uri_for(user, password)

    def primary(self) -> Server:
        """Return the node that is the primary now, waiting for an election if need be."""
        with self.client() as client:
            client.admin.command("ping")
            address = client.address
        return next(node for node in self.nodes if (node.host, node.port) == address)

    def _set_up(self) -> None:
        """Initiate the replica set and create the administrator, by the first node.

        Without users yet, the server lets a client on loopback do both (the
        localhost exception), and only there: so not by `host`.
        """
        first = self.nodes[0]
        if self.replica_set:
            # Only the first can be elected until all are in step: see below.
            config = {
                "_id": self.replica_set,
                "version": 1,
                "settings": _SETTINGS,
                "members": [
                    {"_id": i, "host": node.address, "priority": int(i == 0)} for i, node in enumerate(self.nodes)
                ],
            }
            with _direct(first.port) as client:
                client.admin.command("replSetInitiate", config)
                _wait_for(client, "isWritablePrimary")
        if self.password:
            with _direct(first.port) as client:
                client.admin.command("createUser", ADMIN_USER, pwd=self.password, roles=["root"])
        for node in self.nodes[1:]:
            with _direct(node.port) as client:
                _wait_for(client, "secondary")
        if len(self.nodes) > 1:
            # All alike from now on: with a higher priority, a primary that comes
            # back would at once take over again, a second fail-over nobody asked for.
            with self.client() as client:
                config = client.admin.command("replSetGetConfig")["config"]
                members = [{**member, "priority": 1} for member in config["members"]]
                new = {**config, "version": config["version"] + 1, "members": members}
                client.admin.command("replSetReconfig", new)


def _economy(parameters: Mapping[str, object]) -> list[str]:
    """Return what makes several servers fit on a small machine, and stop at once."""
    settings = {
        "diagnosticDataCollectionEnabled": "false",
        # A primary that is told to stop waits this long for its clients; by default 15 s.
        "shutdownTimeoutMillisForSignaledShutdown": "100",
        **parameters,
    }
    argv = ["--wiredTigerCacheSizeGB", "0.25", "--nounixsocket", "--quiet"]
    for key, value in settings.items():
        argv += ["--setParameter", f"{key}={value}"]
    return argv


def _write_key_file(dir: Path) -> Path:  # noqa: A002
    path = dir / "keyfile"
    path.touch(mode=0o600)  # mongod refuses a key that others can read
    path.write_text(base64.b64encode(secrets.token_bytes(96)).decode())
    return path


def _direct(port: int) -> "MongoClient[dict[str, Any]]":
    from pymongo import MongoClient

    return MongoClient("127.0.0.1", port, directConnection=True, serverSelectionTimeoutMS=30_000)


def _in_a_role(*, alone: bool) -> Callable[[Server], bool]:
    """Return a check whether a started node is back in the replica set, as its primary if there is no other."""

    def check(node: Server) -> bool:
        with _direct(node.port) as client:
            hello = client.admin.command("hello")
            return bool(hello["isWritablePrimary"] or (hello["secondary"] and not alone))

    return check


def _wait_for(client: "MongoClient[dict[str, Any]]", role: str) -> None:
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while not client.admin.command("hello").get(role):
        if time.monotonic() > deadline:
            raise TimeoutError(f"no {role} at {client.address} within {START_TIMEOUT_SECONDS:g} s")
        time.sleep(_POLL_SECONDS)
