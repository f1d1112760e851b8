"""A bare Kubernetes control plane: etcd and kube-apiserver, and the controller-manager when asked for.

No node, no scheduler, no container: what an operator's tests need, in seconds. Admission, CEL, RBAC, server-side apply,
audit and garbage collection (with the controller-manager) are the real ones.
"""

import io
import json
import secrets
import shutil
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from outbox_dev.kubernetes import tools
from outbox_dev.kubernetes.certificates import client_kubeconfig, make_certificates
from outbox_dev.ports import free_port
from outbox_dev.processes import Processes
from outbox_dev.progress import SetupError

HOST = "127.0.0.1"
#: Seconds until etcd and the API server must answer; usually they take five.
START_TIMEOUT = 60.0
STOP_TIMEOUT = 10.0

# Every request with user, verb, object and code, once it is answered, without bodies. With `RequestReceived` each would
# be there twice.
_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        # The control plane's own traffic: thousands of lines that no test asks about.
        {"level": "None", "users": ["system:apiserver", "system:kube-controller-manager"]},
        {"level": "None", "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*"]},
        {"level": "Metadata"},
    ],
}


@dataclass(frozen=True)
class User:
    """Someone the API server knows.

    Attributes:
        name: the user name in RBAC subjects and in the audit log.
        kubeconfig: a file with which a client is that user.
    """

    name: str
    kubeconfig: Path


@dataclass(frozen=True)
class ControlPlane:
    """A running control plane.

    Attributes:
        url: `https://127.0.0.1:<port>`.
        directory: everything it keeps: certificates, etcd's data, logs.
        admin_token: bearer token of a member of `system:masters`.
    """

    url: str
    directory: Path
    admin_token: str
    _processes: Processes = field(repr=False)
    _names: tuple[str, ...] = field(repr=False)

    @classmethod
    def start(
        cls,
        processes: Processes,
        directory: Path,
        *,
        name: str = "control-plane",
        controller_manager: bool = False,
        owner_references_permission_enforcement: bool = False,
    ) -> "ControlPlane":
        """Start a control plane in an empty folder and wait until it answers.

        Args:
            processes: records the processes started.
            directory: gets the data; emptied first.
            name: prefix of the processes' names, for several control planes at once.
            controller_manager: also run kube-controller-manager: garbage collection, Deployments, ServiceAccounts.
                Without it, Pods need no ServiceAccount.
            owner_references_permission_enforcement: turn on the admission plugin of that name, which asks for
                `update` on `…/finalizers` from whoever sets `blockOwnerDeletion` (as OpenShift does).

        Raises:
            SetupError: a program is missing or did not come up; the message holds the end of its log.
        """
        etcd, apiserver = tools.kube("etcd"), tools.kube("kube-apiserver")
        shutil.rmtree(directory, ignore_errors=True)
        pki = directory / "pki"
        pki.mkdir(parents=True)
        port, etcd_port, peer_port = free_port(), free_port(), free_port()
        url, etcd_url, peer_url = f"https://{HOST}:{port}", f"http://{HOST}:{etcd_port}", f"http://{HOST}:{peer_port}"
        make_certificates(directory, HOST, port)
        (directory / "audit-policy.yaml").write_text(yaml.safe_dump(_AUDIT_POLICY), encoding="utf-8")
        token = secrets.token_hex(16)
        tokens = directory / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text(f'{token},admin,admin,"system:masters"\n', encoding="utf-8")

        names = process_names(name)
        plane = cls(url, directory, token, processes, names[: 3 if controller_manager else 2])
        try:
            processes.start(
                names[0],
                [
                    str(etcd),
                    f"--data-dir={directory / 'etcd'}",
                    f"--listen-client-urls={etcd_url}",
                    f"--advertise-client-urls={etcd_url}",
                    f"--listen-peer-urls={peer_url}",
                    f"--initial-advertise-peer-urls={peer_url}",
                    f"--initial-cluster=default={peer_url}",
                    # The data is thrown away with the tests.
                    "--unsafe-no-fsync",
                    "--log-level=warn",
                ],
                log=directory / "etcd.log",
            )
            admission = ["OwnerReferencesPermissionEnforcement"] if owner_references_permission_enforcement else []
            processes.start(
                names[1],
                [
                    str(apiserver),
                    f"--etcd-servers={etcd_url}",
                    f"--bind-address={HOST}",
                    f"--advertise-address={HOST}",
                    f"--secure-port={port}",
                    f"--tls-cert-file={pki / 'apiserver.crt'}",
                    f"--tls-private-key-file={pki / 'apiserver.key'}",
                    f"--client-ca-file={pki / 'ca.crt'}",
                    f"--token-auth-file={tokens}",
                    "--authorization-mode=Node,RBAC",
                    f"--service-account-issuer={url}",
                    f"--service-account-key-file={pki / 'sa.pub'}",
                    f"--service-account-signing-key-file={pki / 'sa.key'}",
                    "--service-cluster-ip-range=10.96.0.0/16",
                    # Nothing listens behind the `kubernetes` Service here, and loopback is no valid endpoint.
                    "--endpoint-reconciler-type=none",
                    f"--audit-policy-file={directory / 'audit-policy.yaml'}",
                    f"--audit-log-path={plane.audit_log}",
                    "--audit-log-mode=blocking",
                    f"--enable-admission-plugins={','.join(admission)}",
                    f"--disable-admission-plugins={'' if controller_manager else 'ServiceAccount'}",
                ],
                log=directory / "kube-apiserver.log",
            )
            plane._wait_ready()
            if controller_manager:
                plane._start_controller_manager()
        except BaseException:
            plane.stop()
            raise
        return plane

    @property
    def ca_path(self) -> Path:
        """The certificate authority that signed the serving certificate (PEM)."""
        return self.directory / "pki" / "ca.crt"

    @property
    def audit_log(self) -> Path:
        """The audit log: one `audit.k8s.io/v1` Event a line, level Metadata, stage ResponseComplete and later."""
        return self.directory / "audit.log"

    def audit_events(self, *, user: str | None = None, offset: int = 0) -> Iterator[dict[str, Any]]:
        """The audit log's events, oldest first.

        The control plane's own requests are not logged. A request is in the log before its answer is sent.

        Args:
            user: only those of this user name.
            offset: bytes of the log to pass over, such as its size at an earlier moment.
        """
        with self.audit_log.open("rb") as log:
            log.seek(offset)
            for line in log:
                if not line.endswith(b"\n"):
                    return
                event: dict[str, Any] = json.loads(line)
                if user is None or event["user"]["username"] == user:
                    yield event

    def kubeconfig(self, path: Path | None = None, *, token: str | None = None) -> Path:
        """Write a kubeconfig.

        Args:
            path: the file to write; `<directory>/admin.kubeconfig` when absent.
            token: whose bearer token it holds; the admin's when absent.
        """
        path = path or self.directory / "admin.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [
                        {"name": "dev", "cluster": {"server": self.url, "certificate-authority": str(self.ca_path)}}
                    ],
                    "users": [{"name": "user", "user": {"token": token or self.admin_token}}],
                    "contexts": [{"name": "dev", "context": {"cluster": "dev", "user": "user"}}],
                    "current-context": "dev",
                },
                indent=2,
            ),
            encoding="utf-8",
        )
        return path

    def add_user(self, name: str, groups: tuple[str, ...] = ()) -> User:
        """A user with a client certificate of the cluster's CA, who has the rights that RBAC grants and no more.

        Args:
            name: the user name.
            groups: its groups; `system:authenticated` comes by itself.
        """
        path = self.directory / f"{name.replace(':', '-').replace('/', '-')}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(client_kubeconfig(self.directory, name, groups), encoding="utf-8")
        return User(name, path)

    def service_account(self, namespace: str, name: str, *, seconds: int = 86400) -> User:
        """A kubeconfig with a token of an existing ServiceAccount, as its pod would have.

        Args:
            namespace: the ServiceAccount's namespace.
            name: the ServiceAccount's name.
            seconds: how long the token lasts.
        """
        answer = self.request(
            "POST",
            f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": seconds}},
        )
        path = self.directory / f"serviceaccount-{namespace}-{name}.kubeconfig"
        return User(f"system:serviceaccount:{namespace}:{name}", self.kubeconfig(path, token=answer["status"]["token"]))

    def request(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """One request as admin, answered with the JSON value (or the text, when it is not JSON).

        Raises:
            urllib.error.HTTPError: the server refused; `read()` gives the Status object it answered with.
            OSError: the server could not be reached.
        """
        request = urllib.request.Request(
            self.url + path,
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={"Authorization": f"Bearer {self.admin_token}", "Content-Type": "application/json"},
        )
        context = ssl.create_default_context(cafile=str(self.ca_path))
        try:
            with urllib.request.urlopen(request, timeout=30, context=context) as answer:
                text = answer.read().decode()
                return json.loads(text) if answer.headers.get_content_type() == "application/json" else text
        except urllib.error.HTTPError as error:
            # It is the open connection too; what is raised instead holds the body alone.
            with error:
                status = error.read()
            raise urllib.error.HTTPError(
                error.url, error.code, error.reason, error.headers, io.BytesIO(status)
            ) from None

    def stop(self) -> None:
        """Stop all of it, the last started first. The folder stays, for its logs."""
        for name in reversed(self._names):
            self._processes.stop(name, STOP_TIMEOUT)

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT
        while True:
            try:
                if self.request("GET", "/readyz") == "ok":
                    # Every object needs a namespace, and the server makes this one a moment after it is ready.
                    self.request("GET", "/api/v1/namespaces/default")
                    return
            except OSError as error:
                last: Exception = error
            missing = set(self._names[:2]) - {process.name for process in self._processes.running()}
            if missing or time.monotonic() > deadline:
                raise SetupError(
                    f"The control plane did not answer ({', '.join(missing) or 'all alive'}): {last}",
                    "".join(f"\n--- {log}\n{_tail(log)}" for log in sorted(self.directory.glob("*.log"))),
                )
            time.sleep(0.1)

    def _start_controller_manager(self) -> None:
        pki = self.directory / "pki"
        kubeconfig = str(self.add_user("system:kube-controller-manager").kubeconfig)
        self._processes.start(
            self._names[2],
            [
                str(tools.kube("kube-controller-manager")),
                f"--kubeconfig={kubeconfig}",
                f"--authentication-kubeconfig={kubeconfig}",
                f"--authorization-kubeconfig={kubeconfig}",
                f"--service-account-private-key-file={pki / 'sa.key'}",
                f"--root-ca-file={pki / 'ca.crt'}",
                "--use-service-account-credentials=true",
                "--leader-elect=false",
                # It makes this folder, by default in /usr/libexec.
                f"--flex-volume-plugin-dir={self.directory / 'volume-plugins'}",
                f"--bind-address={HOST}",
                f"--secure-port={free_port()}",
            ],
            log=self.directory / "kube-controller-manager.log",
        )
        deadline = time.monotonic() + START_TIMEOUT
        while True:
            # Its first visible deed; a Pod is refused until the account exists.
            try:
                self.request("GET", "/api/v1/namespaces/default/serviceaccounts/default")
            except urllib.error.HTTPError as error:
                if time.monotonic() > deadline:
                    log = self.directory / "kube-controller-manager.log"
                    raise SetupError(f"kube-controller-manager did nothing: {error}", _tail(log)) from error
                time.sleep(0.1)
            else:
                return


def process_names(name: str) -> tuple[str, str, str]:
    """The names of a control plane's processes, in the order they are started."""
    return f"{name}-etcd", f"{name}-apiserver", f"{name}-controller-manager"


@contextmanager
def control_plane(
    processes: Processes,
    directory: Path,
    *,
    name: str = "control-plane",
    controller_manager: bool = False,
    owner_references_permission_enforcement: bool = False,
) -> Iterator[ControlPlane]:
    """`ControlPlane.start` as a context, for fixtures: stopped at the end, whatever happened."""
    plane = ControlPlane.start(
        processes,
        directory,
        name=name,
        controller_manager=controller_manager,
        owner_references_permission_enforcement=owner_references_permission_enforcement,
    )
    try:
        yield plane
    finally:
        plane.stop()


def _tail(log: Path, lines: int = 20) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
