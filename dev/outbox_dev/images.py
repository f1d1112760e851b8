"""The project's own images: built by the engine the cluster uses, loaded into its nodes, built again only when changed.

With a registry the Dockerfiles start from their default base image and fetch the locked wheels themselves. On an engine
of our own there is none, so the base is a small Debian made here, and the wheels are fetched outside and handed in.
"""

import hashlib
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from outbox_dev.cached import cached
from outbox_dev.kubernetes import debian
from outbox_dev.kubernetes.cluster import Cluster, engine_for_images
from outbox_dev.kubernetes.engine import Engine, run
from outbox_dev.parts import Part
from outbox_dev.paths import repo_root, state_dir
from outbox_dev.processes import Processes
from outbox_dev.progress import SetupError, say, step

BASE_REPOSITORY = "outbox-dev/base"
BUILD_TIMEOUT = 900.0

#: Names the content an image was built from, so that a build of the same content is not even started.
_CONTENT_LABEL = "io.outboxrelay.dev/content"

_BASE_PACKAGES = ("python3", "python3-venv", "python3-pip", "ca-certificates")
# What only building or administering a Debian needs. pip stays: it installs the dependencies.
_BASE_WITHOUT = (
    "usr/lib/python3*/test",
    "usr/lib/python3*/idlelib",
    "usr/lib/python3*/lib2to3",
    "usr/share/perl*",
    "usr/lib/*/perl*",
    "usr/lib/*/libperl*",
    "usr/bin/perl*",
    "usr/lib/apt",
    "usr/lib/*/gconv",
    "usr/share/zoneinfo/right",
    "usr/lib/udev",
    "usr/lib/systemd",
    "var/lib/apt",
    "var/cache",
    "var/log/*",
)
# Wheels for any glibc up to Debian 12's; pip's --platform means exactly the given one.
_MANYLINUX = ("2_17", "2_24", "2_26", "2_27", "2_28", "2_31", "2_34", "2_35", "2_36")


@dataclass(frozen=True)
class ImageSource:
    """One image: its name, its Dockerfile, its lock, and the folders of code in it, all relative to the checkout."""

    name: str
    dockerfile: str
    lock: str
    code: Sequence[str]


IMAGES = (
    ImageSource(
        "outbox-relay",
        "relay_image/Dockerfile",
        "requirements/relay.txt",
        ("crds/outbox_api", "relay_image/outbox_relay"),
    ),
    ImageSource(
        "outbox-relay-operator",
        "operator/Dockerfile",
        "requirements/operator.txt",
        ("crds/outbox_api", "operator/outbox_operator"),
    ),
)


def reference(name: str) -> str:
    """The full name of one of our images, such as `outbox-relay:dev`.

    `OUTBOX_DEV_IMAGE_PREFIX`, such as `registry.example/team`, is put before it: a cluster that is not ours pulls the
    images from there.
    """
    prefix = os.environ.get("OUTBOX_DEV_IMAGE_PREFIX", "").rstrip("/")
    return f"{prefix}/{name}:dev" if prefix else f"{name}:dev"


def build(engine: Engine, *, base_image: str | None = None) -> list[str]:
    """Build what is not built yet, and return all names.

    Args:
        engine: what builds them.
        base_image: the `BASE_IMAGE` of the Dockerfiles; their default when absent, or, on an engine of our own, a
            Debian made here.

    Raises:
        SetupError: a build failed; the message holds the end of what it printed.
    """
    if engine.netns is not None and base_image is None:
        base_image = _ensure_base(engine)
    return [_build(engine, source, base_image) for source in IMAGES]


def load(cluster: Cluster, engine: Engine) -> None:
    """Bring the images to where the cluster's nodes find them: into the nodes, or, for a user's cluster, by a push.

    Raises:
        SetupError: the cluster is the user's, and no registry prefix is named.
    """
    tags = [reference(source.name) for source in IMAGES]
    if cluster.engine is not None:
        # kind passes over a node that has them already.
        with step(f"Loading {', '.join(tags)} into the cluster"):
            cluster.load_images(*tags)
        return
    if "OUTBOX_DEV_IMAGE_PREFIX" not in os.environ:
        raise SetupError(
            f"The cluster {cluster.name} can get images only from a registry",
            "Set OUTBOX_DEV_IMAGE_PREFIX to one that you push to and it pulls from, such as registry.example/team.",
        )
    for tag in tags:
        with step(f"Pushing {tag}"):
            engine.call("push", tag, timeout=BUILD_TIMEOUT)


def _build(engine: Engine, source: ImageSource, base_image: str | None) -> str:
    tag = reference(source.name)
    content = _content(source, base_image)
    if _label(engine, tag) == content:
        say(f"{tag} is built")
        return tag
    label, arguments = ["--label", f"{_CONTENT_LABEL}={content}"], []
    if base_image is not None:
        arguments += ["--build-arg", f"BASE_IMAGE={base_image}"]
    with tempfile.TemporaryDirectory(prefix="outbox-image-") as folder:
        context = Path(folder)
        for path in (source.dockerfile, source.lock, *source.code):
            _copy(repo_root() / path, context / path)
        # An engine of our own sees no network.
        if engine.netns is not None and base_image is not None:
            shutil.copytree(_wheels(source, _python_version(engine, base_image)), context / "wheels")
            arguments += ["--build-arg", "WHEELS=wheels", "--build-arg", "PIP_NO_INDEX=1", "--network", "none"]
        arguments += ["--file", str(context / source.dockerfile), str(context)]
        with step(f"Building {tag}"):
            if engine.netns is not None:
                # A name keeps the stage with the dependencies when the engine's data go to the cache: without one it
                # is a leftover to this engine's builder, and is pruned.
                stage = ["--target", "dependencies", "--tag", f"outbox-dev/{source.name}-dependencies"]
                engine.call("build", *stage, *arguments, timeout=BUILD_TIMEOUT)
            engine.call("build", *label, "--tag", tag, *arguments, timeout=BUILD_TIMEOUT)
    return tag


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy2(source, target)


def _content(source: ImageSource, base_image: str | None) -> str:
    digest = hashlib.sha256(f"{base_image}".encode())
    for path in (source.dockerfile, source.lock, *source.code):
        top = repo_root() / path
        files = sorted(file for file in top.rglob("*") if file.is_file()) if top.is_dir() else [top]
        for file in files:
            if "__pycache__" not in file.parts:
                digest.update(f"{file.relative_to(repo_root())} {file.stat().st_mode:o}\n".encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _label(engine: Engine, tag: str) -> str | None:
    if not engine.call("images", "--quiet", tag).strip():
        return None
    labels = json.loads(engine.call("image", "inspect", "--format", "{{json .Config.Labels}}", tag))
    value = (labels or {}).get(_CONTENT_LABEL)
    return None if value is None else str(value)


def _python_version(engine: Engine, base_image: str) -> str:
    """The version of an image's Python, such as `3.11`."""
    script = "import sys; print('%d.%d' % sys.version_info[:2])"
    python = ["--rm", "--network", "none", "--entrypoint", "python3", base_image]
    return engine.call("run", *python, "-c", script).strip()


def _ensure_base(engine: Engine) -> str:
    """The name of the base image made here, once the engine has it."""
    key = hashlib.sha256(f"{debian.release()} {_BASE_PACKAGES} {_BASE_WITHOUT} 1".encode()).hexdigest()[:16]
    name = f"{BASE_REPOSITORY}:{key}"

    def make(folder: Path) -> None:
        root = folder / "root"
        with step("Making the base image from Debian's packages", expect="half a minute"):
            debian.bootstrap(root, _BASE_PACKAGES)
            for pattern in _BASE_WITHOUT:
                for path in root.glob(pattern):
                    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            debian.pack(root, folder / "base.tar")
            shutil.rmtree(root)

    archive = cached("base-image", key, make) / "base.tar"
    if not engine.call("images", "--quiet", name).strip():
        with step("Importing the base image"):
            engine.call("import", archive, name)
    return name


def _wheels(source: ImageSource, python: str) -> Path:
    """The wheels of a lock for the base image's Python, from the cache or downloaded."""
    lock = repo_root() / source.lock
    machine = platform.machine()

    def download(folder: Path) -> None:
        platforms = [f"--platform=manylinux_{glibc}_{machine}" for glibc in _MANYLINUX]
        with step(f"Downloading the wheels of {source.lock} for Python {python}"):
            run(
                [
                    *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
                    *("--require-hashes", "--only-binary=:all:", "--no-deps", f"--python-version={python}"),
                    *platforms,
                    f"--platform=manylinux2014_{machine}",
                    f"--dest={folder}",
                    f"--requirement={lock}",
                ],
                timeout=BUILD_TIMEOUT,
            )

    key = hashlib.sha256(f"{python} {machine}".encode() + lock.read_bytes()).hexdigest()[:16]
    return cached("wheels", f"{source.name}-{key}", download)


app = typer.Typer(help="The project's own container images.", no_args_is_help=True)


@app.command("build")
def build_command(
    *,
    base_image: Annotated[
        str | None, typer.Option(help="BASE_IMAGE of the Dockerfiles: Python 3.11 or newer, with pip and venv.")
    ] = None,
) -> None:
    """Build what has changed, with the engine that the cluster uses."""
    for tag in build(engine_for_images(Processes(state_dir())), base_image=base_image):
        print(tag)


@app.command("load")
def load_command() -> None:
    """Bring the built images into the cluster's nodes (or push them, for a cluster of KUBECONFIG)."""
    cluster = Cluster.current()
    if cluster is None:
        raise SetupError("No cluster is up", "Run `outbox-dev cluster up` first.")
    load(cluster, engine_for_images(Processes(state_dir())))


def _nothing_runs() -> list[str]:
    return []


def _nothing_to_end() -> None:
    """Images live in the engine, which the cluster part ends."""


part = Part(name="images", app=app, status=_nothing_runs, down=_nothing_to_end)
