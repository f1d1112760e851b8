"""The container engine: the user's Docker or podman when one answers, else one of our own (`own_engine`)."""

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from outbox_dev.paths import state_dir
from outbox_dev.progress import SetupError

#: Seconds for a single call of the engine's client.
CALL_TIMEOUT = 600.0


@dataclass(frozen=True)
class Engine:
    """How to reach a container engine.

    Attributes:
        program: `docker` or `podman`, a name on PATH.
        env: variables its clients (and kind) need besides the caller's.
        netns: the network namespace that it and its containers live in, when that is not the machine's own.
    """

    program: str
    env: Mapping[str, str] = field(default_factory=dict)
    netns: str | None = None

    def environment(self) -> dict[str, str]:
        """The caller's environment with `env` on top."""
        return {**os.environ, **self.env}

    def inside(self, argv: Sequence[str | Path]) -> list[str]:
        """The command that runs `argv` in the engine's network namespace."""
        return [*enter(self.netns), *map(str, argv)]

    def call(self, *args: str | Path, timeout: float = CALL_TIMEOUT) -> str:
        """Run the engine's client and return its standard output.

        Raises:
            SetupError: it exited non-zero; the message holds what it printed on standard error.
        """
        return run([self.program, *args], env=self.environment(), timeout=timeout)


def checkout_id() -> str:
    """Eight hex digits that tell this checkout's things from another's on the same machine."""
    return hashlib.sha256(str(state_dir()).encode()).hexdigest()[:8]


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Wait until no other process is in this block for the same folder; the kernel lets go when one ends."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def enter(netns: str | None) -> list[str]:
    """The words to put before a command so that it runs in a network namespace of /run/netns.

    nsenter, not `ip netns exec`: that mounts a fresh /sys and so hides /sys/fs/cgroup.
    """
    return ["nsenter", f"--net=/run/netns/{netns}"] if netns else []


def run(argv: Sequence[str | Path], *, env: Mapping[str, str] | None = None, timeout: float = CALL_TIMEOUT) -> str:
    """Run a program to its end and return its standard output.

    Raises:
        SetupError: it exited non-zero, took too long, or is absent.
    """
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=timeout, check=False)
    except FileNotFoundError as error:
        raise SetupError(f"{words[0]} is not installed", "Install it and have it on PATH.") from error
    except subprocess.TimeoutExpired as error:
        raise SetupError(f"`{' '.join(words)}` did not end in {timeout:.0f} s", str(error.stderr or "")) from error
    if done.returncode != 0:
        raise SetupError(
            f"`{' '.join(words)}` failed with exit code {done.returncode}", (done.stderr or done.stdout).strip()[-4000:]
        )
    return done.stdout


def find_engine() -> Engine | None:
    """The user's engine: a Docker daemon that answers, else a podman that does, else None."""
    for program, argv, env in (
        ("docker", ["docker", "version", "--format", "{{.Server.Version}}"], {}),
        # kind uses podman only when told to.
        ("podman", ["podman", "info", "--format", "{{.Version.Version}}"], {"KIND_EXPERIMENTAL_PROVIDER": "podman"}),
    ):
        if shutil.which(program) is None:
            continue
        try:
            answers = subprocess.run(argv, capture_output=True, timeout=20, check=False).returncode == 0
        except subprocess.TimeoutExpired:
            # A client that hangs is an engine that does not answer.
            answers = False
        if answers:
            return Engine(program, env)
    return None
