import json
import subprocess
import urllib.error
from collections.abc import Iterator
from pathlib import Path

import pytest

from outbox_dev.kubernetes import tools
from outbox_dev.kubernetes.control_plane import ControlPlane, control_plane
from outbox_dev.processes import Processes

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    folder = tmp_path_factory.mktemp("plane")
    processes = Processes(folder)
    processes.end_with_caller()
    with control_plane(
        processes, folder / "plane", controller_manager=True, owner_references_permission_enforcement=True
    ) as running:
        yield running
    assert processes.running() == []


def kubectl(kubeconfig: Path, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    argv = [tools.kube("kubectl"), f"--kubeconfig={kubeconfig}", *args]
    return subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=30, check=False)


def test_it_is_the_pinned_kubernetes(plane: ControlPlane) -> None:
    assert plane.request("GET", "/version")["gitVersion"] == tools.kubernetes_version()


def test_the_kubeconfig_is_the_admins(plane: ControlPlane) -> None:
    assert kubectl(plane.kubeconfig(), "auth", "can-i", "*", "*", "--all-namespaces").stdout.strip() == "yes"


def test_a_user_has_no_rights_but_those_granted(plane: ControlPlane) -> None:
    user = plane.add_user("jane", ("readers",))

    assert "forbidden" in kubectl(user.kubeconfig, "get", "namespaces").stderr
    kubectl(plane.kubeconfig(), "create", "clusterrole", "reader", "--verb=list", "--resource=namespaces")
    kubectl(plane.kubeconfig(), "create", "clusterrolebinding", "reader", "--clusterrole=reader", "--group=readers")

    assert "default" in kubectl(user.kubeconfig, "get", "namespaces").stdout


def test_a_service_account_is_known_by_its_token(plane: ControlPlane) -> None:
    account = plane.service_account("default", "default")

    answer = kubectl(account.kubeconfig, "auth", "whoami", "--output=json").stdout

    assert (
        json.loads(answer)["status"]["userInfo"]["username"] == account.name == "system:serviceaccount:default:default"
    )


def test_the_audit_log_has_each_request_of_a_user_once_it_is_answered(plane: ControlPlane) -> None:
    user = plane.add_user("auditee")
    offset = plane.audit_log.stat().st_size
    kubectl(user.kubeconfig, "get", "--raw=/api/v1/namespaces/default/configmaps")

    events = list(plane.audit_events(user=user.name, offset=offset))

    assert [(e["verb"], e["objectRef"]["resource"], e["responseStatus"]["code"]) for e in events] == [
        ("list", "configmaps", 403)
    ]


def test_owned_objects_go_with_their_owner(plane: ControlPlane) -> None:
    owner = plane.request("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "owner"}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    owned = {"metadata": {"name": "owned", "ownerReferences": [reference]}}
    plane.request("POST", "/api/v1/namespaces/default/configmaps", owned)
    plane.request("DELETE", "/api/v1/namespaces/default/configmaps/owner")

    gone = kubectl(plane.kubeconfig(), "wait", "--for=delete", "configmap/owned", "--timeout=20s")

    assert gone.returncode == 0, gone.stderr


def test_blocking_an_owners_deletion_needs_the_right_to_its_finalizers(plane: ControlPlane) -> None:
    user = plane.add_user("blocker")
    kubectl(plane.kubeconfig(), "create", "role", "blocker", "--verb=create", "--resource=configmaps")
    kubectl(plane.kubeconfig(), "create", "rolebinding", "blocker", "--role=blocker", "--user=blocker")
    secret = plane.request("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "blocked"}})
    reference = {"apiVersion": "v1", "kind": "Secret", "name": "blocked", "uid": secret["metadata"]["uid"]}
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "blocking", "ownerReferences": [{**reference, "blockOwnerDeletion": True}]},
    }

    refused = kubectl(user.kubeconfig, "create", "--filename=-", stdin=json.dumps(manifest))

    assert "cannot set blockOwnerDeletion" in refused.stderr


def test_a_stranger_is_refused(plane: ControlPlane) -> None:
    stranger = ControlPlane(plane.url, plane.directory, "wrong", Processes(plane.directory), ())

    with pytest.raises(urllib.error.HTTPError, match="401"):
        stranger.request("GET", "/api/v1/namespaces")
