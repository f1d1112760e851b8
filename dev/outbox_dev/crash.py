"""A relay's end by SIGKILL, as a node's out-of-memory killer would do it: nothing is said, nothing is flushed."""

from outbox_dev.kubernetes.cluster import Cluster
from outbox_dev.progress import SetupError

# Of the processes in the cgroups of the pod with the UID $1, kill those of the
# relay (and not the pause process, which is the pod itself). systemd's cgroup
# driver writes the UID with underscores.
_KILL_IN_POD = """
for cgroup in $(grep -lE "pod($1|$(echo "$1" | tr - _))" /proc/[0-9]*/cgroup 2>/dev/null); do
  pid=$(basename "$(dirname "$cgroup")")
  if tr '\\0' ' ' < "/proc/$pid/cmdline" | grep -q "outbox.relay"; then kill -KILL "$pid" && echo "$pid"; fi
done
"""


def kill_relay(cluster: Cluster, namespace: str, pod: str) -> None:
    """Kill the relay's process from the node, then delete its pod at once, so that crash back-off plays no part.

    In a user's cluster, whose nodes we do not enter, the pod is deleted without a period of grace instead.

    Args:
        cluster: where it runs.
        namespace: the pod's.
        pod: the pod's name.

    Raises:
        SetupError: no relay runs in that pod, or the cluster does not answer.
    """
    if cluster.engine is not None:
        uid = cluster.kubectl("get", "pod", pod, f"--namespace={namespace}", "--output=jsonpath={.metadata.uid}")
        if not cluster.node_exec(["sh", "-c", _KILL_IN_POD, "sh", uid]).split():
            raise SetupError(f"No relay process of pod {namespace}/{pod} was found in the node", f"kubectl logs {pod}")
    cluster.kubectl("delete", "pod", pod, f"--namespace={namespace}", "--force", "--grace-period=0", "--wait=false")
