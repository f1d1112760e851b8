"""Kafka's jars, fetched once by Maven, and the Java that runs them."""

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

from outbox_dev.cached import cached
from outbox_dev.paths import repo_root
from outbox_dev.progress import fail, step

VERSION = "4.2.1"
_JAVA_MINIMUM = 17  # Kafka 4 brokers need it


def java() -> str:
    """Return the Java launcher.

    Raises:
        SetupError: there is none, or it is too old.
    """
    program = shutil.which("java")
    get_it = f"install Java {_JAVA_MINIMUM} or newer (on Debian: apt-get install default-jre-headless)"
    if program is None:
        fail("Kafka needs Java, and java is not on the PATH", get_it)
    printed = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    version = re.search(r'version "(\d+)', printed)
    if version is None or int(version[1]) < _JAVA_MINIMUM:
        fail(f"{program} is too old for Kafka {VERSION}: {printed.splitlines()[:1]}", get_it)
    return program


def kafka_jars() -> Path:
    """Return the folder with the broker's jars.

    Raises:
        SetupError: Maven is missing, or reaches no repository.
    """
    pom = repo_root() / "dev" / "kafka" / "pom.xml"
    key = f"{VERSION}-{hashlib.sha256(pom.read_bytes()).hexdigest()[:8]}"
    return cached("kafka", key, lambda folder: _fetch(pom, folder))


def _fetch(pom: Path, folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        fail("fetching Kafka needs Maven, and mvn is not on the PATH", "on Debian: apt-get install maven")
    with step(f"Fetching Kafka {VERSION}", expect="about 20 s, 43 MB"):
        done = subprocess.run(
            [maven, "-q", "-B", "-f", pom, "dependency:copy-dependencies", f"-DoutputDirectory={folder}"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            fail(
                f"Maven could not fetch Kafka:\n{done.stdout.strip()[-2000:]}",
                "check that mvn reaches Maven Central (a mirror goes into ~/.m2/settings.xml)",
            )
