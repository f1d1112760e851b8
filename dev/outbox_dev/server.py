"""One server process of MongoDB or Kafka, and the faults that tests put it through."""

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from outbox_dev.processes import Process, Processes

START_TIMEOUT_SECONDS = 120.0
_POLL_SECONDS = 0.02


@dataclass
class Server:
    """A server on a fixed port with its data in a fixed place, so that it can come back.

    Its methods block; from async code, call them by `asyncio.to_thread`.

    Attributes:
        name: its name among the processes.
        host: address that clients and its peers use.
        port: TCP port.
        argv: how it is started.
        ready: whether it serves, beyond taking connections.
    """

    name: str
    host: str
    port: int
    argv: list[str]
    processes: Processes = field(repr=False)
    ready: Callable[["Server"], bool] = field(default=lambda _: True, repr=False)

    @property
    def address(self) -> str:
        """`host:port`."""
        return f"{self.host}:{self.port}"

    @property
    def running(self) -> bool:
        """Whether its process is there."""
        return self.processes.get(self.name) is not None

    @property
    def process(self) -> Process:
        """The running process.

        Raises:
            RuntimeError: it does not run.
        """
        process = self.processes.get(self.name)
        if process is None:
            raise RuntimeError(f"{self.name} does not run")
        return process

    def launch(self) -> None:
        """Start it (again) on its port and data, without waiting for it."""
        self.processes.start(self.name, self.argv)

    def wait_ready(self) -> None:
        """Wait until it serves.

        Raises:
            RuntimeError: it ended, with the end of its log.
            TimeoutError: it does not serve within two minutes.
        """
        process = self.processes.get(self.name)
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while True:
            if process is None or not process.alive:
                log = process.log_tail() if process else ""
                raise RuntimeError(f"{self.name} ended at its start:\n{log}")
            if self._accepts() and self.ready(self):
                return
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"{self.name} does not serve after {START_TIMEOUT_SECONDS:g} s:\n{process.log_tail()}"
                )
            time.sleep(_POLL_SECONDS)

    def start(self) -> None:
        """Start it (again) on its port and data, and wait until it serves."""
        self.launch()
        self.wait_ready()

    def stop(self, timeout: float = 30.0) -> None:
        """End it in an orderly way, by SIGKILL after `timeout` seconds; its data stay."""
        self.processes.stop(self.name, timeout)

    def kill(self) -> None:
        """End it with SIGKILL; its data stay."""
        self.process.kill()

    def freeze(self) -> None:
        """Stop it with SIGSTOP: connections stay open and nobody answers."""
        self.process.freeze()

    def thaw(self) -> None:
        """Let it go on after `freeze`."""
        self.process.thaw()

    def heal(self) -> None:
        """Make it serve again, frozen or dead."""
        if self.running:
            self.thaw()
        else:
            self.start()

    def restart(self) -> None:
        """End it in an orderly way if it runs, and start it again on the same port."""
        self.stop()
        self.start()

    def _accepts(self) -> bool:
        try:
            with socket.create_connection((self.host, self.port), timeout=1):
                return True
        except OSError:
            return False
