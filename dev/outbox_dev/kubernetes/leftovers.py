"""What a container engine leaves on the machine, and its removal: processes, mounts, cgroups, empty folders.

All of it is told apart from other engines' by names that only ours has.
"""

import errno
import os
import signal
import time
from pathlib import Path

from outbox_dev.kubernetes.engine import alone_in, run
from outbox_dev.progress import SetupError

TIMEOUT = 60.0

_TRACES = (
    "/run/netns",
    "/run/containerd/s",
    "/run/containerd",
    "/run/docker/plugins",
    "/run/docker",
    "/opt/containerd/bin",
    "/opt/containerd/lib",
    "/opt/containerd",
    # A node mounts the machine's, so dockerd makes it where there is none.
    "/usr/lib/modules",
)


def kill_strays(record: Path, cgroup: str) -> None:
    """End what a killed dockerd leaves.

    Args:
        record: dockerd's record among the processes; containerd and shims carry its path in their environment.
        cgroup: the name of the cgroup that its containers are in.
    """
    mark, group = f"OUTBOX_DEV_RECORD={record}".encode(), f"/{cgroup}/"
    deadline = time.monotonic() + TIMEOUT
    while True:
        pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        strays = [pid for pid in pids if _is_stray(pid, mark, group)]
        if not strays:
            return
        for pid in strays:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if time.monotonic() > deadline:
            raise SetupError(f"Processes {strays} of the container engine do not end", "See `ps` for their state.")
        time.sleep(0.05)


def _is_stray(pid: int, mark: bytes, group: str) -> bool:
    proc = Path("/proc") / str(pid)
    try:
        if group in (proc / "cgroup").read_text(encoding="utf-8"):
            return "\nState:\tZ" not in (proc / "status").read_text(encoding="utf-8", errors="replace")
        return pid != os.getpid() and mark in (proc / "environ").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return False


def unmount_below(*folders: Path) -> None:
    """Unmount all that is mounted on or below some folders."""
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    points = [Path(line.split()[4].replace("\\040", " ")) for line in mounts]
    for point in reversed(points):
        if any(point.is_relative_to(folder) for folder in folders):
            run(["umount", "--lazy", point])


def remove_cgroups(name: str) -> None:
    """Remove a top-level cgroup, of every hierarchy, once the last process in it has ended."""
    root = Path("/sys/fs/cgroup")
    deadline = time.monotonic() + TIMEOUT
    for top in [root / name, *root.glob(f"*/{name}")]:
        if not top.is_dir():
            continue
        for folder, _, _ in os.walk(top, topdown=False):
            while True:
                try:
                    Path(folder).rmdir()
                    break
                except OSError as error:
                    # Busy until the kernel has let go of the last ended process.
                    if error.errno != errno.EBUSY or time.monotonic() > deadline:
                        raise
                    time.sleep(0.05)


def remove_traces() -> None:
    """Remove the empty folders that iproute2, containerd, dockerd and a node's mounts made, deepest first.

    Not while another checkout's engine runs: its nodes mount some of them, and a mount of a removed folder is broken.
    """
    with alone_in(Path("/run")):
        if any(Path("/run").glob("outbox-*")):
            return
        netns = Path("/run/netns")
        if netns.is_dir() and not any(netns.iterdir()):
            unmount_below(netns)
        # Sockets of shims that were killed; one that any containerd's shim listens on is in the kernel's list.
        listening = Path("/proc/net/unix").read_text(encoding="utf-8", errors="replace")
        for socket in Path("/run/containerd/s").glob("*"):
            if str(socket) not in listening:
                socket.unlink(missing_ok=True)
        for name in _TRACES:
            folder = Path(name)
            if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
                folder.rmdir()
