"""`python -m outbox_dev.demo.prepare MARKER`: the cluster with the images, made while something else is shown.

MARKER is written when all is there; without it, the log says what is missing.
"""

import sys
from pathlib import Path

from outbox_dev.installation import cluster_with_images
from outbox_dev.kubernetes import tools
from outbox_dev.progress import SetupError, say


def main(marker: Path) -> int:
    """Prepare, and return the exit code."""
    try:
        cluster_with_images()
        tools.helm()
    except SetupError as error:
        say(f"error: {error}")
        return 1
    marker.touch()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
