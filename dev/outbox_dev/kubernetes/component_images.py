"""The images that kubeadm runs as pods, made of our own programs, as one archive that containerd imports.

The format is `docker save`'s (a manifest.json, a configuration an image, a tar a layer), which `ctr images import`
reads. The programs are static, so an image is a layer with one file; kube-proxy also needs iptables, taken from the
node's root.
"""

import hashlib
import io
import json
import platform
import re
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from outbox_dev.kubernetes import tools
from outbox_dev.kubernetes.engine import run

# Debian has these directories of the root merged into /usr; so do the layers.
_MERGED = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Image:
    """An image to be: its full name, its layers (uncompressed tars, lowest first), and its entrypoint if any."""

    name: str
    layers: Sequence[bytes]
    entrypoint: str | None = None


def kubeadm_image_names() -> list[str]:
    """The names of the images kubeadm will ask for, such as `registry.k8s.io/etcd:3.6.8-0`."""
    kubeadm = tools.kube("kubeadm")
    return run([kubeadm, "config", "images", "list", "--kubernetes-version", tools.kubernetes_version()]).split()


def component_images(root: Path, pause: str) -> list[Image]:
    """The images for kubeadm's names.

    Args:
        root: a node's root file system, for iptables.
        pause: the name of the sandbox image in the node's containerd configuration; it need not be kubeadm's.
    """
    servers = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "etcd")
    kube = layer(
        {"usr/local/bin/kube": tools.build("kube")}, {f"usr/local/bin/{program}": "kube" for program in servers}
    )
    coredns = layer({"coredns": tools.build("coredns")}, {})
    sandbox = layer({"pause": tools.build("pause")}, {})
    images = []
    for name in sorted({*kubeadm_image_names(), pause}):
        program = name.rpartition(":")[0].rpartition("/")[2]
        match program:
            case "coredns":
                images.append(Image(name, [coredns], "/coredns"))
            case "pause":
                images.append(Image(name, [sandbox], "/pause"))
            case "kube-proxy":
                images.append(Image(name, [kube, _iptables_layer(root)]))
            case _ if program in servers:
                images.append(Image(name, [kube]))
            case _:
                raise LookupError(f"kubeadm asks for the image {name}, which is not made here")
    return images


def layer(files: Mapping[str, Path], links: Mapping[str, str]) -> bytes:
    """A layer with some executable files (content by path in the image) and symbolic links, in a merged-/usr root.

    Every date is the epoch, so that the same content is the same layer.
    """
    buffer = io.BytesIO()
    folders = {"tmp", "etc", *_MERGED.values()}
    for path in (*files, *links):
        folders.update(str(parent) for parent in Path(path).parents if str(parent) != ".")
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for folder in sorted(folders):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            tar.addfile(entry)
        for path, target in {**_MERGED, **links}.items():
            entry = tarfile.TarInfo(path)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
        for path, source in files.items():
            entry = tarfile.TarInfo(path)
            entry.mode, entry.size = 0o755, source.stat().st_size
            with source.open("rb") as content:
                tar.addfile(entry, content)
    return buffer.getvalue()


def _iptables_layer(root: Path) -> bytes:
    """The iptables of a node's root: the multi-call program, its extensions, and the libraries they load."""
    program = "/usr/sbin/xtables-nft-multi"
    extensions = [f"/{path.relative_to(root)}" for path in root.glob("usr/lib/*/xtables/*.so")]
    listing = run(["chroot", root, "ldd", program, *extensions])
    libraries = sorted(set(re.findall(r"(/\S+\.so\S*) ?\(", listing)))
    files = {program[1:]: root / program[1:], **{path[1:]: root / path[1:] for path in extensions}}
    for library in libraries:
        top = library[1:].split("/", 1)[0]
        merged = f"usr{library}" if top in _MERGED else library[1:]
        # A library's name is a link to the file of its version; the layer has the file under that name.
        real = run(["chroot", root, "readlink", "-f", library]).strip()
        files[merged] = root / real[1:]
    names = [f"{family}{suffix}" for family in ("iptables", "ip6tables") for suffix in ("", "-save", "-restore")]
    return layer(files, {f"usr/sbin/{name}": "xtables-nft-multi" for name in names})


def write_archive(images: Sequence[Image], archive: Path) -> None:
    """Write images as one `docker save` archive; a layer that several share is there once."""
    manifest, written = [], set()
    with tarfile.open(archive, "w") as tar:

        def add(name: str, content: bytes) -> str:
            if name not in written:
                written.add(name)
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
            return name

        for image in images:
            digests = [hashlib.sha256(content).hexdigest() for content in image.layers]
            config = json.dumps(
                {
                    "architecture": _ARCHITECTURES[platform.machine()],
                    "os": "linux",
                    # Else images of the same layers would be one image, and containerd keeps one name of it.
                    "author": image.name,
                    "config": {
                        "Env": [f"PATH={_PATH}"],
                        **({"Entrypoint": [image.entrypoint]} if image.entrypoint else {}),
                    },
                    "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
                }
            ).encode()
            manifest.append(
                {
                    "Config": add(f"{hashlib.sha256(config).hexdigest()}.json", config),
                    "RepoTags": [image.name],
                    "Layers": [
                        add(f"{digest}/layer.tar", content)
                        for digest, content in zip(digests, image.layers, strict=True)
                    ],
                }
            )
        add("manifest.json", json.dumps(manifest).encode())
