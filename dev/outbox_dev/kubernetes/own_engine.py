"""A Docker engine of our own, for a machine without one: Debian's packages, in a network namespace.

Nothing of it reaches the machine: no bridge, no iptables rule and no address outside the namespace, its own cgroup
parent, its own data. It needs root and Debian, and works around what a restricted machine withholds, each only where
it is withheld.
"""

import errno
import json
import os
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path

from outbox_dev.kubernetes import debian
from outbox_dev.kubernetes.engine import Engine, alone_in, checkout_id, enter, run
from outbox_dev.paths import cache_dir, state_dir
from outbox_dev.processes import Processes
from outbox_dev.progress import SetupError, say, step

DOCKERD = "dockerd"
START_TIMEOUT = 60.0
STOP_TIMEOUT = 60.0

_PROGRAMS = {
    "dockerd": "docker.io",
    "docker": "docker.io",
    "containerd": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "ip": "iproute2",
    "nsenter": "util-linux",
}
_CAP_SYS_RESOURCE = 24  # capability.h

# The only interface besides loopback is one end of a pair whose other end nobody reads: packets to the outside are
# dropped, not refused. A client that starts before kube-proxy has its rules then retries at once instead of giving up.
_LINKS = (
    "link set lo up",
    "link add out0 type veth peer name out1",
    "link set out0 up",
    "link set out1 up",
    "addr add 198.18.0.1/30 dev out0",
    "neigh add 198.18.0.2 lladdr 02:00:00:00:00:02 dev out0",
    "route add default via 198.18.0.2",
)


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

# Takes the capability out of what dockerd asks runc for: of each bundle (create) and each process (exec).
_RUNC_WITHOUT_SYS_RESOURCE = """#!/bin/sh
previous=
for argument; do
  case $previous in
    --bundle) file=$argument/config.json ;;
    --process) file=$argument ;;
    *) file= ;;
  esac
  [ -z "$file" ] || sed -i 's/,"CAP_SYS_RESOURCE"//g; s/"CAP_SYS_RESOURCE",//g' "$file"
  previous=$argument
done
exec {runc} "$@"
"""


def netns_name() -> str:
    """The name of this checkout's network namespace."""
    return f"outbox-{checkout_id()}"


def _run_dir() -> Path:
    # Sockets live here: a socket's path may have 107 bytes at most, and a checkout can be anywhere.
    return Path("/run") / f"outbox-{checkout_id()}"


def _data_dir() -> Path:
    return state_dir() / "engine"


def _old_data_dir() -> Path:
    return state_dir() / "engine.old"


def _engine() -> Engine:
    return Engine("docker", {"DOCKER_HOST": f"unix://{_run_dir()}/docker.sock"}, netns_name())


def running(processes: Processes) -> Engine | None:
    """The engine if it runs, else None."""
    return _engine() if processes.get(DOCKERD) is not None else None


def has_sys_resource() -> bool:
    """Whether root on this machine may use CAP_SYS_RESOURCE, which runc and kubelet take for granted."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    bounding = next(line for line in status.splitlines() if line.startswith("CapBnd:"))
    return bool(int(bounding.split()[1], 16) >> _CAP_SYS_RESOURCE & 1)


def start(processes: Processes) -> Engine:
    """Start the engine unless it runs, and wait until it answers.

    Raises:
        SetupError: this machine cannot have one, or it did not come up.
    """
    engine = running(processes)
    if engine is not None:
        return engine
    if os.geteuid() != 0:
        raise SetupError(
            "No Docker or podman answers",
            "Install Docker (or podman) and let this user reach it; or run as root on Debian, "
            "where an engine of our own is started from Debian's packages.",
        )
    debian.install(_PROGRAMS)
    with step("Starting a container engine in a network namespace of its own"):
        # A crash may have left anything behind.
        stop(processes)
        with alone_in(Path("/run")):
            _run_dir().mkdir()
        _make_namespace()
        _take_data()
        process = processes.start(DOCKERD, _command(), netns=netns_name())
        engine = _engine()
        deadline = time.monotonic() + START_TIMEOUT
        while True:
            try:
                engine.call("version", timeout=10)
            except SetupError as error:
                if not process.alive or time.monotonic() > deadline:
                    raise SetupError("dockerd did not come up", f"{error}\n{process.log_tail()}") from error
                time.sleep(0.1)
            else:
                return engine


def stop(processes: Processes) -> None:
    """End the engine with all its containers and take away all it made; no error when there is none.

    After a clean end its images go back to the cache, so that the next start has them at once.
    """
    engine = running(processes)
    clean = engine is not None and _emptied(engine)
    processes.stop(DOCKERD, STOP_TIMEOUT)
    _kill_strays()
    _unmount_below(_data_dir(), _run_dir())
    shutil.rmtree(_run_dir(), ignore_errors=True)
    _remove_cgroups()
    _remove_namespace()
    _remove_traces()
    if clean:
        _give_data()
    for folder in (_data_dir(), _old_data_dir()):
        shutil.rmtree(folder, ignore_errors=True)


def _emptied(engine: Engine) -> bool:
    """Remove all but the images that have a name; False, with a message, when the engine does not do it."""
    try:
        containers = engine.call("ps", "--all", "--quiet", timeout=STOP_TIMEOUT).split()
        if containers:
            engine.call("rm", "--force", "--volumes", *containers, timeout=STOP_TIMEOUT)
        for what in ("volume", "network", "image"):
            engine.call(what, "prune", "--force", timeout=STOP_TIMEOUT)
    except SetupError as error:
        say(f"The container engine is ended by force, and its images are lost: {error}")
        return False
    return True


def _command() -> list[str]:
    run_dir = _run_dir()
    # Its own file, so that the machine's /etc/docker/daemon.json, made for another engine, is not read.
    config = run_dir / "daemon.json"
    argv = [
        "dockerd",
        f"--config-file={config}",
        f"--host=unix://{run_dir}/docker.sock",
        f"--data-root={_data_dir()}",
        f"--exec-root={run_dir}/exec",
        f"--pidfile={run_dir}/dockerd.pid",
        f"--cgroup-parent=/{netns_name()}",
    ]
    if has_sys_resource():
        config.write_text("{}", encoding="utf-8")
    else:
        runtime = run_dir / "runc"
        runtime.write_text(_RUNC_WITHOUT_SYS_RESOURCE.format(runc=shutil.which("runc")), encoding="utf-8")
        runtime.chmod(0o755)
        settings = {"runtimes": {"restricted": {"path": str(runtime)}}, "default-runtime": "restricted"}
        config.write_text(json.dumps(settings), encoding="utf-8")
        # Its default of -500 is what it may not set.
        argv.append("--oom-score-adjust=0")
    return argv


def _make_namespace() -> None:
    name = netns_name()
    run(["ip", "netns", "add", name])
    for words in _LINKS:
        run([*enter(name), "ip", *words.split()])


def _remove_namespace() -> None:
    # Its interfaces go with it.
    if (Path("/run/netns") / netns_name()).exists():
        run(["ip", "netns", "del", netns_name()])


def _remove_traces() -> None:
    """Remove the empty folders that iproute2, containerd, dockerd and a node's mounts made, deepest first.

    Not while another checkout's engine runs: its nodes mount some of them, and a mount of a removed folder is broken.
    """
    with alone_in(Path("/run")):
        if any(Path("/run").glob("outbox-*")):
            return
        netns = Path("/run/netns")
        if netns.is_dir() and not any(netns.iterdir()):
            _unmount_below(netns)
        # Sockets of shims that were killed; one that any containerd's shim listens on is in the kernel's list.
        listening = Path("/proc/net/unix").read_text(encoding="utf-8", errors="replace")
        for socket in Path("/run/containerd/s").glob("*"):
            if str(socket) not in listening:
                socket.unlink(missing_ok=True)
        for name in _TRACES:
            folder = Path(name)
            if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
                folder.rmdir()


def _cached_data() -> Path:
    return cache_dir("engine-data") / run(["dockerd", "--version"]).strip().replace(" ", "_").replace(",", "")


def _take_data() -> None:
    """Move the data with its images here from the cache, if it is there; a move, so that only one engine has it."""
    try:
        _cached_data().rename(_data_dir())
    except FileNotFoundError:
        pass
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        # The cache is on another file system: a copy would take longer than importing the images again.


def _give_data() -> None:
    """Move the data to the cache, in place of an older one that another checkout's engine left there meanwhile."""
    try:
        with suppress(FileNotFoundError):
            _cached_data().rename(_old_data_dir())
        _data_dir().rename(_cached_data())
    except OSError as error:
        # On another file system, or yet another engine was quicker.
        if error.errno not in (errno.EXDEV, errno.ENOTEMPTY, errno.EEXIST):
            raise


def _kill_strays() -> None:
    """End what a killed dockerd leaves: containerd and shims carry its record's name, containers our cgroup's."""
    mark, group = f"/processes/{DOCKERD}.json".encode(), f"/{netns_name()}/"
    deadline = time.monotonic() + STOP_TIMEOUT
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
        record = f"OUTBOX_DEV_RECORD={state_dir()}".encode() + mark
        return pid != os.getpid() and record in (proc / "environ").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return False


def _unmount_below(*folders: Path) -> None:
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    points = [Path(line.split()[4].replace("\\040", " ")) for line in mounts]
    for point in reversed(points):
        if any(point.is_relative_to(folder) for folder in folders):
            run(["umount", "--lazy", point])


def _remove_cgroups() -> None:
    root = Path("/sys/fs/cgroup")
    deadline = time.monotonic() + STOP_TIMEOUT
    for top in [root / netns_name(), *root.glob(f"*/{netns_name()}")]:
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
