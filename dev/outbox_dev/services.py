"""A service that the command line keeps running between commands: its processes, data and address."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from outbox_dev.paths import state_dir
from outbox_dev.processes import Processes


class Service:
    """A folder of the state directory that holds everything of one service.

    Args:
        name: for example `mongo`; the folder's name.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def folder(self) -> Path:
        """Where everything of it lies."""
        return state_dir() / self.name

    @property
    def data(self) -> Path:
        """Where its data lie."""
        return self.folder / "data"

    @property
    def processes(self) -> Processes:
        """Its processes."""
        return Processes(self.folder)

    def up(self, start: Callable[[Processes, Path], str]) -> None:
        """Bring it up unless it runs, and print its status.

        Args:
            start: starts it, given its processes and an empty data folder, and
                returns the line that says how to reach it.
        """
        if not self.status():
            self.down()  # what a crash left behind
            try:
                address = start(self.processes, self.data)
            except BaseException:
                self.processes.stop_all()
                raise
            (self.folder / "address.json").write_text(json.dumps(address))
        for line in self.status():
            print(line)

    def status(self) -> list[str]:
        """Return how to reach it and its process ids; nothing when it is not (wholly) up."""
        running = self.processes.running()
        address = self.folder / "address.json"
        if not running or not address.exists():
            return []
        return [json.loads(address.read_text()), *(f"{process.name}: pid {process.pid}" for process in running)]

    def down(self) -> None:
        """End it and remove its data; also what a crash left."""
        self.processes.stop_all()
        shutil.rmtree(self.folder, ignore_errors=True)
