"""The Helm chart: what it renders for each toggle, and that its rights are the needed ones."""

from typing import Any

import pytest
import yaml

from outbox_dev.kubernetes import tools
from outbox_dev.paths import repo_root
from outbox_operator.custom_resource import OutboxRelay
from outbox_operator.kube.resources import resource_of
from outbox_operator.render.children import expected
from outbox_operator.render.children import render as render_children
from outbox_operator.settings import RelayDefaults

from .cluster import relay
from .conftest import CHART, Cluster, helm_run, render

pytestmark = pytest.mark.usefixtures("helm")
Object = dict[str, Any]


def one(manifests: list[Object], kind: str, name: str | None = None) -> Object:
    (found,) = [m for m in manifests if m["kind"] == kind and name in {None, m["metadata"]["name"]}]
    return found


def container(*arguments: str) -> Object:
    found: Object = one(render(*arguments), "Deployment")["spec"]["template"]["spec"]["containers"][0]
    return found


def test_helm_finds_nothing_to_complain_about() -> None:
    done = helm_run("lint", "--strict", str(CHART), "--kube-version", tools.kubernetes_version())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 chart(s) failed" in done.stdout


def test_the_crd_is_the_one_of_the_contract_and_is_kept_on_uninstall() -> None:
    file = yaml.safe_load((repo_root() / "crds" / "outboxrelays.yaml").read_text())
    crd = one(render(), "CustomResourceDefinition")
    assert crd["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
    assert crd == file


def test_the_crd_can_be_left_out_and_need_not_be_kept() -> None:
    assert not [m for m in render("--set=crds.enabled=false") if m["kind"] == "CustomResourceDefinition"]
    assert one(render("--set=crds.keep=false"), "CustomResourceDefinition")["metadata"] == {
        "name": "outboxrelays.outboxrelay.io"
    }


@pytest.mark.parametrize(
    "values",
    [
        "unknown=1",
        "image.unknown=1",
        "relay.unknown=1",
        "crds.unknown=1",
        "serviceAccount.unknown=1",
        "resources.unknown=1",
        "logLevel=LOUD",
        "resync=soon",
        "image.pullPolicy=Sometimes",
        "image.digest=abc",
        "replicas=-1",
        "namespaces=all",
    ],
)
def test_values_that_mean_nothing_are_refused(values: str) -> None:
    done = helm_run("template", "outbox", str(CHART), "--kube-version", tools.kubernetes_version(), "--set", values)
    assert done.returncode != 0
    assert "values don't meet the specifications of the schema" in done.stderr


def test_cluster_wide_it_has_a_cluster_role_and_in_chosen_namespaces_a_role_in_each_with_the_same_rules() -> None:
    wide, narrow = render(), render("--set=namespaces={a,b}")
    rules = one(wide, "ClusterRole")["rules"]
    assert not [m for m in narrow if m["kind"].startswith("Cluster")]
    roles = {m["metadata"]["namespace"]: m["rules"] for m in narrow if m["kind"] == "Role"}
    assert roles["a"] == roles["b"] == rules
    assert roles.keys() == {"a", "b", "outbox-system"}
    arguments = one(narrow, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
    assert [a for a in arguments if a.startswith("--namespace")] == ["--namespace=a", "--namespace=b"]


def test_the_rights_are_few() -> None:
    for manifest in render():
        for rule in manifest.get("rules", []):
            assert "secrets" not in rule["resources"]
            assert not {"*"} & {*rule["verbs"], *rule["resources"], *rule["apiGroups"]}
            assert not {"escalate", "bind", "impersonate", "delete", "deletecollection"} & set(rule["verbs"])


def test_the_operator_holds_what_it_grants_to_relays_and_may_make_every_kind_of_child() -> None:
    held = {
        (group, resource, verb)
        for rule in one(render(), "ClusterRole")["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    obj = relay()
    obj["metadata"] |= {"namespace": "shop", "uid": "u", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"}
    resource = OutboxRelay.of(obj)
    assert resource.spec is not None
    observed = dict.fromkeys(expected("orders", 1))
    for child in render_children(resource, resource.spec, observed, RelayDefaults("r"), stopped=False).values():
        kind = resource_of(child)
        assert {(kind.group, kind.plural, verb) for verb in ("create", "get", "patch")} <= held
        for rule in child.get("rules", []):
            assert {(g, r, v) for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"]} <= held


def test_the_pod_is_restricted() -> None:
    pod = one(render(), "Deployment")["spec"]["template"]["spec"]
    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert pod["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


@pytest.mark.parametrize(
    ("values", "image", "relay_image"),
    [
        ((), "outbox-relay-operator:0.1.0", "outbox-relay:0.1.0"),
        (("--set=image.tag=v2", "--set=relay.image.tag=v3"), "outbox-relay-operator:v2", "outbox-relay:v3"),
        (
            ("--set=image.registry=mirror.example/x/", f"--set=relay.image.digest=sha256:{'0' * 64}"),
            "mirror.example/x/outbox-relay-operator:0.1.0",
            f"mirror.example/x/outbox-relay@sha256:{'0' * 64}",
        ),
    ],
)
def test_images_are_named_by_registry_tag_and_digest(values: tuple[str, ...], image: str, relay_image: str) -> None:
    found = container(*values)
    assert found["image"] == image
    assert f"--relay-image={relay_image}" in found["args"]


def test_every_toggle_reaches_the_pod() -> None:
    values = [
        "--set=imagePullSecrets={mine}",
        "--set=relay.imagePullSecrets={theirs}",
        "--set=relay.image.pullPolicy=Never",
        "--set=resync=1h",
        "--set=concurrency=3",
        "--set=logLevel=DEBUG",
        "--set=podLabels.team=shop",
        "--set=podAnnotations.note=x",
        "--set=nodeSelector.disk=ssd",
        "--set=tolerations[0].key=a",
        "--set=affinity.nodeAffinity.x=y",
        "--set=priorityClassName=important",
        "--set=serviceAccount.annotations.a=b",
        "--set=resources.limits.memory=1Gi",
    ]
    manifests = render(*values)
    template = one(manifests, "Deployment")["spec"]["template"]
    pod = template["spec"]
    assert template["metadata"]["labels"]["team"] == "shop"
    assert template["metadata"]["annotations"] == {"note": "x"}
    assert (pod["imagePullSecrets"], pod["priorityClassName"]) == ([{"name": "mine"}], "important")
    assert (pod["nodeSelector"], pod["tolerations"]) == ({"disk": "ssd"}, [{"key": "a"}])
    assert pod["affinity"] == {"nodeAffinity": {"x": "y"}}
    assert pod["containers"][0]["resources"]["limits"]["memory"] == "1Gi"
    assert {
        "--relay-image-pull-secret=theirs",
        "--relay-image-pull-policy=Never",
        "--resync=1h",
        "--concurrency=3",
        "--log-level=DEBUG",
    } <= set(pod["containers"][0]["args"])
    assert one(manifests, "ServiceAccount")["metadata"]["annotations"] == {"a": "b"}


def test_one_replica_gives_its_lease_back_before_the_next_starts_and_several_roll() -> None:
    assert one(render(), "Deployment")["spec"]["strategy"] == {"type": "Recreate"}
    assert one(render("--set=replicas=2"), "Deployment")["spec"]["strategy"] == {"type": "RollingUpdate"}


def test_the_operator_understands_the_arguments_that_the_chart_gives_it() -> None:
    from typer.testing import CliRunner

    from outbox_operator import app, cli

    seen: list[Any] = []

    async def run(settings: Any) -> None:
        seen.append(settings)

    found = container("--set=namespaces={a,b}", "--set=relay.imagePullSecrets={x}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "run", run)
        result = CliRunner().invoke(cli.app, found["args"], env={"POD_NAME": "pod-1"})
    assert result.exit_code == 0, result.output
    (settings,) = seen
    assert settings.namespaces == ("a", "b")
    assert settings.relay == RelayDefaults("outbox-relay:0.1.0", "IfNotPresent", ("x",))
    assert (settings.lease.namespace, settings.lease.identity) == ("outbox-system", "pod-1")
    assert (settings.resync, settings.concurrency, settings.port) == (600, 8, 8080)


def test_the_server_stores_the_crd_as_the_file_has_it(cluster: Cluster) -> None:
    file = yaml.safe_load((repo_root() / "crds" / "outboxrelays.yaml").read_text())
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/outboxrelays.outboxrelay.io"
    assert cluster.request("GET", path)["spec"] == file["spec"]
