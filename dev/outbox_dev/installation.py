"""The operator in a cluster, as a user would have it: images loaded, chart installed by Helm, rollout awaited."""

from concurrent.futures import ThreadPoolExecutor

from outbox_dev import images
from outbox_dev.kubernetes import cluster as clusters
from outbox_dev.kubernetes import tools
from outbox_dev.kubernetes.cluster import Cluster
from outbox_dev.paths import repo_root, state_dir
from outbox_dev.processes import Processes
from outbox_dev.progress import step

RELEASE = "outbox-relay-operator"
NAMESPACE = "outbox-system"


def cluster_with_images() -> Cluster:
    """Bring the cluster up while the images are built, and load them; each only where it is not done yet.

    Raises:
        SetupError: something is missing on this machine, or a step failed.
    """
    processes = Processes(state_dir())
    engine = clusters.engine_for_images(processes)
    with ThreadPoolExecutor(1) as pool:
        built = pool.submit(images.build, engine)
        cluster = clusters.up(processes)
        built.result()
    images.load(cluster, engine)
    return cluster


def install_operator(cluster: Cluster) -> None:
    """Install or upgrade the chart with the images of this checkout, and wait for the operator.

    Raises:
        SetupError: Helm refused, or the operator did not become available in two minutes.
    """
    with step("Installing the operator with Helm", expect="ten seconds"):
        relay, operator = (images.reference(source.name).rpartition(":") for source in images.IMAGES)
        cluster.run(
            tools.helm(),
            "upgrade",
            "--install",
            RELEASE,
            repo_root() / "charts" / "outbox-relay-operator",
            f"--namespace={NAMESPACE}",
            "--create-namespace",
            f"--set=image.repository={operator[0]},image.tag={operator[2]}",
            f"--set=relay.image.repository={relay[0]},relay.image.tag={relay[2]}",
            "--wait",
            "--timeout=120s",
            timeout=180,
        )
