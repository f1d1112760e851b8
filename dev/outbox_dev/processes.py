"""Processes that outlive the command that started them, and are ended by pid.

Each process is recorded in a file of its own, with the time it started: a pid
alone may by now belong to somebody else, a pid with its start time and the
machine's boot cannot. So `stop` never signals a process that is not ours, also
days later and after a crash of the command that started it.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from outbox_dev.proc import Stat, boot_id, stat_of
from outbox_dev.progress import fail

STOP_TIMEOUT_SECONDS = 10.0
_KILL_TIMEOUT_SECONDS = 10.0
_POLL_SECONDS = 0.02
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]*")

# A process starts behind this gate and becomes the program only when its record
# is on disk. If the caller dies in between, the gate reads end-of-file and ends:
# no process ever runs unrecorded.
_GATE = 'read -r go && exec "$@" </dev/null'

# Carried by the environment to children, so that what a killed daemon leaves
# behind in its session is recognised as ours.
_MARK = "OUTBOX_DEV_RECORD"


@dataclass(frozen=True)
class Process:
    """One recorded process.

    Attributes:
        name: unique within its `Processes`.
        pid: process id, and id of the session and group that it leads.
        start_ticks: start time in clock ticks since boot (field 22 of
            /proc/<pid>/stat, proc(5)).
        boot_id: the boot that `start_ticks` counts from.
        argv: what was started, without a namespace's wrapper.
        log: file that standard output and error go to.
        started_at: wall clock, seconds since the epoch.
    """

    name: str
    pid: int
    start_ticks: int
    boot_id: str
    argv: list[str]
    log: str
    started_at: float

    @property
    def alive(self) -> bool:
        """Whether this very process still runs (a zombie does not)."""
        stat = stat_of(self.pid)
        if stat is None or not self._is(stat):
            return False
        if stat.state == "Z":
            # Reap it if it is a child of ours; nobody else will.
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, os.WNOHANG)
        return stat.state not in "ZX"

    def signal(self, number: signal.Signals) -> bool:
        """Signal this process alone; return whether it was there to be signalled."""
        if not self.alive:
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True

    def kill(self, timeout: float = _KILL_TIMEOUT_SECONDS) -> None:
        """End it with SIGKILL and wait until it is gone; its record stays."""
        self.signal(signal.SIGKILL)
        if not self.wait(timeout):
            raise TimeoutError(f"{self.name} (pid {self.pid}) outlived SIGKILL by {timeout:g} s")

    def freeze(self) -> None:
        """Stop its execution (SIGSTOP): it holds its connections and answers nobody."""
        self.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen process go on (SIGCONT)."""
        self.signal(signal.SIGCONT)

    def wait(self, timeout: float) -> bool:
        """Wait until it has ended; return False when it still runs after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while self.alive:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def _is(self, stat: Stat) -> bool:
        """Whether what has this pid now is still this process."""
        return stat.start_ticks == self.start_ticks and self.boot_id == boot_id()

    def log_tail(self, lines: int = 20) -> str:
        """Return the last lines it printed, for an error message."""
        try:
            text = Path(self.log).read_text(errors="replace")
        except FileNotFoundError:
            return ""
        return "\n".join(text.splitlines()[-lines:])


class Processes:
    """The processes recorded in one folder.

    Args:
        state: folder for the records (`processes/`) and logs (`logs/`).
    """

    def __init__(self, state: Path) -> None:
        self.state = state
        self._records = state / "processes"
        self._logs = state / "logs"

    def start(
        self,
        name: str,
        argv: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        log: Path | None = None,
        netns: str | None = None,
    ) -> Process:
        """Start a process in a session of its own and record it before it runs.

        Args:
            name: lower-case letters, digits, dots and dashes; must not be running.
            argv: program and arguments; the program is looked up on the PATH.
            env: the whole environment; the caller's when absent.
            cwd: working folder.
            log: file to append standard output and error to; `logs/<name>.log`
                when absent.
            netns: name of a network namespace (in /run/netns) to run in.

        Raises:
            ValueError: the name is malformed or in use.
            SetupError: the program is not there.
        """
        if not _NAME.fullmatch(name):
            raise ValueError(f"process name {name!r}: lower-case letters, digits, . and - only")
        running = self.get(name)
        if running is not None:
            raise ValueError(f"process {name!r} runs already (pid {running.pid})")
        if shutil.which(argv[0], path=(os.environ if env is None else env).get("PATH")) is None:
            fail(f"{argv[0]} is not there", "install it, or put it on the PATH")
        self._records.mkdir(parents=True, exist_ok=True)
        log = log or self._logs / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        record = self._record_path(name)

        # nsenter and the gate both exec, so the pid and its start time stay.
        enter = ["nsenter", f"--net=/run/netns/{netns}"] if netns else []
        command = ["/bin/sh", "-c", _GATE, name, *enter, *map(str, argv)]
        with log.open("ab") as output:
            gate = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                cwd=cwd,
                env={**(os.environ if env is None else env), _MARK: str(record)},
                start_new_session=True,
            )
        stat = stat_of(gate.pid)
        if gate.stdin is None or stat is None:
            raise RuntimeError(f"{name}: the shell that should start it is gone")
        process = Process(
            name=name,
            pid=gate.pid,
            start_ticks=stat.start_ticks,
            boot_id=boot_id(),
            argv=[str(argument) for argument in argv],
            log=str(log),
            started_at=time.time(),
        )
        _write_atomically(record, json.dumps(asdict(process), indent=1))
        with gate.stdin as go:
            go.write(b"go\n")
        # From here on the record speaks for the process; keep Popen from warning
        # about a child that is meant to outlive it.
        gate.returncode = 0
        return process

    def get(self, name: str) -> Process | None:
        """Return the running process of that name, or None."""
        process = _read(self._record_path(name))
        return process if process is not None and process.alive else None

    def running(self) -> list[Process]:
        """Return what still runs, oldest first."""
        return [process for process in self._recorded() if process.alive]

    def stop(self, name: str, timeout: float = STOP_TIMEOUT_SECONDS) -> None:
        """End a process: SIGTERM, wait `timeout` seconds, SIGKILL; forget its record.

        What it leaves behind in its session is killed. A process that is already
        gone, or was never started, is no error.
        """
        record = self._record_path(name)
        process = _read(record)
        if process is None:
            return
        process.signal(signal.SIGTERM)
        # A frozen process cannot act on a TERM before it goes on.
        process.thaw()
        if not process.wait(timeout):
            process.kill()
        _kill_leftovers(process, str(record))
        record.unlink(missing_ok=True)

    def stop_all(self, timeout: float = STOP_TIMEOUT_SECONDS) -> None:
        """End every recorded process, youngest first."""
        for process in reversed(self._recorded()):
            self.stop(process.name, timeout)

    def end_with_caller(self) -> None:
        """End everything recorded here when the calling process ends, however it ends.

        A small guard process waits for the end of a pipe that only the caller
        holds open; the kernel closes it also after SIGKILL.
        """
        read_end, write_end = os.pipe()
        guard = subprocess.Popen(
            [sys.executable, "-m", "outbox_dev.processes", str(self.state)],
            stdin=read_end,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(read_end)
        guard.returncode = 0  # it outlives us on purpose; see `start`
        # Never closed by us: the kernel does it at our end. Python opened it
        # close-on-exec, so no child holds it.
        self._guard_pipe = write_end

    def _record_path(self, name: str) -> Path:
        return self._records / f"{name}.json"

    def _recorded(self) -> list[Process]:
        found = (_read(path) for path in self._records.glob("*.json"))
        return sorted((p for p in found if p is not None), key=lambda p: p.started_at)


def _read(path: Path) -> Process | None:
    try:
        return Process(**json.loads(path.read_text()))
    except FileNotFoundError:
        return None


def _write_atomically(path: Path, text: str) -> None:
    partial = path.with_suffix(".partial")
    partial.write_text(text)
    partial.rename(path)


def _kill_leftovers(process: Process, record: str) -> None:
    """Kill what is left in the session of an ended process and carries our mark."""
    leader = stat_of(process.pid)
    if (leader is not None and not process._is(leader)) or process.boot_id != boot_id():  # noqa: SLF001 - same module
        return  # the pid, and so the session, is somebody else's by now
    mark = f"{_MARK}={record}".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        pid = int(entry.name)
        stat = stat_of(pid)
        if stat is None or stat.session != process.pid or stat.start_ticks < process.start_ticks:
            continue
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                os.kill(pid, signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue


def _guard(state: Path) -> None:
    """Wait for the end of standard input, then end what is recorded in `state`."""
    sys.stdin.buffer.read()
    Processes(state).stop_all()


if __name__ == "__main__":
    _guard(Path(sys.argv[1]))
