"""`python -m outbox_dev.e2e [pytest arguments]`: the end-to-end tests, run where the cluster can be reached."""

import sys

from outbox_dev.installation import cluster_with_images
from outbox_dev.kubernetes.cluster import exec_in
from outbox_dev.paths import repo_root
from outbox_dev.progress import SetupError, say


def main(arguments: list[str]) -> int:
    """Bring up the cluster with the images, run pytest on `e2e/`, and return its exit code. The cluster stays up."""
    try:
        cluster = cluster_with_images()
    except SetupError as error:
        say(f"error: {error}")
        return 1
    root = repo_root()
    # A test may wait for the kubelet, which looks at a mounted Secret about once a minute.
    pytest = [sys.executable, "-m", "pytest", str(root / "e2e"), f"--rootdir={root}", "--timeout=600", *arguments]
    return exec_in(cluster, pytest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
