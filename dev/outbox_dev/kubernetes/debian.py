"""Debian as a source of programs and of image contents, for a machine that has no image registry."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from outbox_dev.kubernetes.engine import run
from outbox_dev.progress import SetupError, step

_POLICY = Path("/usr/sbin/policy-rc.d")


def install(programs: Mapping[str, str]) -> None:
    """Install the packages of those programs that are not on PATH.

    Args:
        programs: package by program.

    Raises:
        SetupError: something is missing and this is not root on Debian.
    """
    missing = sorted({package for program, package in programs.items() if shutil.which(program) is None})
    if not missing:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise SetupError(f"Missing: {', '.join(missing)}", f"As root, on Debian: apt-get install {' '.join(missing)}")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with step(f"Installing Debian packages: {', '.join(missing)}", expect="half a minute"), _no_services_started():
        run(["apt-get", "update", "--quiet"], env=env)
        run(["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", *missing], env=env)


@contextmanager
def _no_services_started() -> Iterator[None]:
    """Keep package scripts from starting daemons: a dockerd of the machine's own would change its network."""
    if _POLICY.exists():
        yield
        return
    _POLICY.write_text("#!/bin/sh\nexit 101\n", encoding="ascii")
    _POLICY.chmod(0o755)
    try:
        yield
    finally:
        _POLICY.unlink()


def release() -> str:
    """The code name of this machine's Debian, such as `bookworm`.

    Raises:
        SetupError: this is not Debian.
    """
    release_file = Path("/etc/os-release")
    text = release_file.read_text(encoding="utf-8") if release_file.exists() else ""
    facts = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    if facts.get("ID", "").strip('"') != "debian" or "VERSION_CODENAME" not in facts:
        raise SetupError(
            "No image registry can be used here, and images are made on the spot only on Debian",
            "Install Docker or podman with access to a registry.",
        )
    return facts["VERSION_CODENAME"].strip('"')


def _sources() -> str:
    """The machine's own apt sources file for Debian itself: its mirror is the one that can be reached."""
    for name in ("/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list"):
        if Path(name).is_file() and Path(name).stat().st_size:
            return name
    raise SetupError("No apt source for Debian found", "Expected in /etc/apt/sources.list.d/debian.sources")


def bootstrap(target: Path, packages: Sequence[str]) -> None:
    """Unpack a minimal Debian of this machine's release with some packages, without documentation and caches.

    Args:
        target: a folder that does not exist yet.
        packages: besides the essential ones.
    """
    install({"mmdebstrap": "mmdebstrap"})
    leave_out = ("doc", "man", "info", "locale", "lintian")
    run(
        [
            "mmdebstrap",
            "--quiet",
            "--variant=minbase",
            f"--include={','.join(packages)}",
            *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in leave_out),
            release(),
            target,
            _sources(),
        ]
    )


def pack(folder: Path, archive: Path) -> None:
    """Write a folder's content, owned as it is, to an uncompressed tar file."""
    subprocess.run(
        [
            "tar",
            "--create",
            "--file",
            str(archive),
            "--directory",
            str(folder),
            "--numeric-owner",
            "--one-file-system",
            ".",
        ],
        check=True,
    )
