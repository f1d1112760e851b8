"""A Docker engine of our own, for a machine without one: Debian's packages, in a network namespace.

Nothing of it reaches the machine: no bridge, no iptables rule and no address outside the namespace, its own cgroup
parent, its own data. It needs root and Debian, and works around what a restricted machine withholds, each only where
it is withheld.
"""

import errno
import json
import os
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from outbox_dev.kubernetes import debian
from outbox_dev.kubernetes.engine import Engine, alone_in, checkout_id, enter, run
from outbox_dev.kubernetes.leftovers import kill_strays, remove_cgroups, remove_traces, unmount_below
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
    kill_strays(state_dir() / "processes" / f"{DOCKERD}.json", netns_name())
    unmount_below(_data_dir(), _run_dir())
    shutil.rmtree(_run_dir(), ignore_errors=True)
    remove_cgroups(netns_name())
    _remove_namespace()
    remove_traces()
    if clean:
        _give_data()
    for folder in (_data_dir(), _old_data_dir()):
        shutil.rmtree(folder, ignore_errors=True)


def load_images(engine: Engine, nodes: Sequence[str], tags: Sequence[str]) -> None:
    """What `kind load docker-image` does, by way of a file in the node's volume.

    kind hands the images over on standard input of `docker exec`, which takes twice as long.
    """
    wanted = {tag: engine.call("image", "inspect", "--format", "{{.Id}}", tag).strip() for tag in tags}
    for node in nodes:
        listing = json.loads(engine.call("exec", node, "crictl", "images", "--output=json"))
        there = {image["id"] for image in listing["images"]}
        missing = [tag for tag, identity in wanted.items() if identity not in there]
        if not missing:
            continue
        mounts = json.loads(engine.call("inspect", "--format", "{{json .Mounts}}", node))
        volume = next(Path(mount["Source"]) for mount in mounts if mount["Destination"] == "/var")
        archive = volume / "images.tar"
        try:
            engine.call("save", "--output", archive, *missing)
            engine.call(
                "exec", node, "ctr", "--namespace=k8s.io", "images", "import", "--all-platforms", "/var/images.tar"
            )
        finally:
            archive.unlink(missing_ok=True)


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
