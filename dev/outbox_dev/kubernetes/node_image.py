"""A kind node image made on the spot, for a machine without an image registry.

It is what kind's published image is: a Debian with systemd, containerd, runc and CNI plugins, kind's own files (they
come in its Go module), Kubernetes, and the component images in containerd's store. The differences: containerd is
Debian's, and pods' network is the plain bridge plugin, since kind's own network daemon is not a Go module.
"""

import hashlib
import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from outbox_dev.cached import cached
from outbox_dev.kubernetes import component_images, debian, tools
from outbox_dev.kubernetes.engine import Engine, run
from outbox_dev.progress import SetupError, fail, step

REPOSITORY = "outbox-dev/node"
IMPORT_TIMEOUT = 120.0

_PACKAGES = (
    ("systemd", "systemd-sysv"),
    ("conntrack", "iptables", "iproute2", "ethtool", "mount", "kmod"),
    ("jq", "procps", "ca-certificates"),
    ("containerd", "runc", "containernetworking-plugins"),
)

# What kind's own image removes too: units that wait for, or change, what belongs to the machine and not to a container.
_UNITS_TO_REMOVE = (
    "lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service",
    "lib/systemd/system/multi-user.target.wants/*",
    "lib/systemd/system/local-fs.target.wants/*",
    "lib/systemd/system/basic.target.wants/*",
    "lib/systemd/system/sockets.target.wants/*udev*",
    "lib/systemd/system/sockets.target.wants/*initctl*",
    "etc/systemd/system/*.wants/*",
    # Debian's own settings of the kernel; kind's are in etc/sysctl.d.
    "usr/lib/sysctl.d/*",
    "etc/sysctl.d/99-sysctl.conf",
)

# No provisioner: nothing here asks for a volume, but kind installs whatever its image holds.
_STORAGE = """\
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: standard}
provisioner: kubernetes.io/no-provisioner
"""


def tag() -> str:
    """The image's name, whose tag changes with everything that it is made of."""
    return f"{REPOSITORY}:{_key()}"


def ensure(engine: Engine) -> str:
    """Have the node image in the engine, and return its name.

    It takes nothing if the engine has it, about ten seconds from the cache, and about two minutes the first time.
    """
    name = tag()
    if engine.call("images", "--quiet", name).strip():
        return name
    archive = _archive()
    with step("Importing the node image", expect="ten seconds"):
        engine.call(
            *("import", "--change", "ENV container=docker"),
            *("--change", 'ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]'),
            *(archive, name),
        )
        for other in engine.call("images", "--format", "{{.Repository}}:{{.Tag}}", REPOSITORY).split():
            if other != name:
                engine.call("rmi", other)
    return name


def _key() -> str:
    digest = hashlib.sha256(f"{debian.release()} {tools.module_version('sigs.k8s.io/kind')}".encode())
    for name in ("kube", "coredns", "pause", "crictl"):
        digest.update(tools.cache_key(name).encode())
    for module in (__file__, component_images.__file__):
        digest.update(Path(module).read_bytes())
    return digest.hexdigest()[:16]


def _archive() -> Path:
    """The node's root as a tar file, from the cache or made now."""

    def make(folder: Path) -> None:
        debian.install({"mmdebstrap": "mmdebstrap", "containerd": "containerd"})
        root = folder / "root"
        packages = [package for group in _PACKAGES for package in group]
        with step("Node image: Debian", expect="half a minute"):
            debian.bootstrap(root, packages)
        with step("Node image: Kubernetes and kind's files"):
            _add_kind_files(root)
            _add_kubernetes(root)
            _settle_units(root)
        with step("Node image: component images", expect="ten seconds"):
            _add_component_images(root)
        with step("Node image: packing"):
            debian.pack(root, folder / "node.tar")
            shutil.rmtree(root)

    return cached("node-image", _key(), make) / "node.tar"


def _add_kind_files(root: Path) -> None:
    files = tools.module_source("sigs.k8s.io/kind") / "images" / "base" / "files"
    for top in ("etc", "kind", "usr"):
        # Files of the module cache are read-only, and Debian's folders keep their modes.
        run(["cp", "--recursive", "--no-preserve=mode,ownership", files / top, root])
    for program in (root / "kind" / "bin", *(root / "kind" / "bin").iterdir(), *(root / "usr/local/bin").iterdir()):
        program.chmod(0o755)
    (root / "kind" / "version").write_text(tools.kubernetes_version(), encoding="utf-8")
    manifests = root / "kind" / "manifests"
    manifests.mkdir()
    (manifests / "default-storage.yaml").write_text(_STORAGE, encoding="utf-8")
    # kind's hook hides the machine's product name and serial from pods; limits are the node's, not these.
    spec = json.loads(run(["chroot", root, "ctr", "oci", "spec"]))
    spec.setdefault("hooks", {}).setdefault("createContainer", []).append({"path": "/kind/bin/mount-product-files.sh"})
    spec["process"].pop("rlimits", None)
    (root / "etc/containerd/cri-base.json").write_text(json.dumps(spec), encoding="utf-8")


def _add_kubernetes(root: Path) -> None:
    shutil.copy2(tools.build("kube"), root / "usr/bin/kube")
    for program in ("kubelet", "kubeadm", "kubectl"):
        (root / "usr/bin" / program).symlink_to("kube")
    shutil.copy2(tools.build("crictl"), root / "usr/local/bin/crictl")
    # kind's unit file and the CNI expect them where its own image has them.
    for program in ("containerd", "ctr", "containerd-shim-runc-v2"):
        (root / "usr/local/bin" / program).symlink_to(f"/usr/bin/{program}")
    for folder in ("opt/cni", "etc/cni/net.d", "etc/kubernetes/manifests"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "opt/cni/bin").symlink_to("/usr/lib/cni")


def _settle_units(root: Path) -> None:
    for pattern in _UNITS_TO_REMOVE:
        for unit in root.glob(pattern):
            unit.unlink()
    with (root / "etc/systemd/journald.conf").open("a", encoding="utf-8") as settings:
        settings.write("ReadKMsg=no\n")
    run(["chroot", root, "systemctl", "--quiet", "enable", "kubelet", "containerd", "undo-mount-hacks"])
    # It would register formats with the machine's kernel.
    run(["chroot", root, "systemctl", "--quiet", "mask", "systemd-binfmt"])


def _sandbox_image(root: Path) -> str:
    config = (root / "etc/containerd/config.toml").read_text(encoding="utf-8")
    for line in config.splitlines():
        key, _, value = line.partition("=")
        if key.strip() in ("sandbox_image", "sandbox"):
            return value.strip().strip("\"'")
    raise fail("kind's containerd configuration names no sandbox image", "Pin another kind in dev/tools/go.mod.")


def _add_component_images(root: Path) -> None:
    """Import the component images into the root's containerd store; a node unpacks those it starts."""
    images = component_images.component_images(root, _sandbox_image(root))
    # In /tmp, since a socket's path is short.
    with tempfile.TemporaryDirectory(prefix="outbox-") as folder:
        work = Path(folder)
        archive, socket, log = work / "images.tar", work / "containerd.sock", work / "containerd.log"
        component_images.write_archive(images, archive)
        config = work / "containerd.toml"
        config.write_text(
            f"""\
version = 2
root = "{root / "var/lib/containerd"}"
state = "{work / "state"}"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt"]
[grpc]
  address = "{socket}"
""",
            encoding="utf-8",
        )
        with log.open("wb") as output:
            containerd = subprocess.Popen(["containerd", "--config", config], stdout=output, stderr=output)
        try:
            deadline = time.monotonic() + IMPORT_TIMEOUT
            while not socket.is_socket():
                if containerd.poll() is not None or time.monotonic() > deadline:
                    raise SetupError("containerd did not start", log.read_text(encoding="utf-8")[-2000:])
                time.sleep(0.05)
            run(
                [
                    *("ctr", "--address", socket, "--namespace", "k8s.io"),
                    *("images", "import", "--no-unpack", "--all-platforms", archive),
                ],
                timeout=IMPORT_TIMEOUT,
            )
        finally:
            containerd.terminate()
            containerd.wait(timeout=30)
