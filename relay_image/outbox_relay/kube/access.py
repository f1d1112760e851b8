"""Where the API server is and who we are: from the pod's service account, or from a kubeconfig."""

import base64
import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class AccessError(Exception):
    """There is no usable configuration for an API server."""


@dataclass(frozen=True)
class Access:
    """How to reach an API server.

    Attributes:
        server: base URL without a trailing slash.
        tls: TLS context, None for plain HTTP.
        token_file: file with a bearer token that the kubelet renews, so it is read for each call.
        token: a fixed bearer token.
    """

    server: str
    tls: ssl.SSLContext | None
    token_file: Path | None = None
    token: str | None = None

    def bearer(self) -> str | None:
        """Return the bearer token as it is now."""
        if self.token_file is not None:
            return self.token_file.read_text(encoding="utf-8").strip()
        return self.token


def find_access(environment: Mapping[str, str] = os.environ) -> Access:
    """Return the access of a kubeconfig named by KUBECONFIG, else of the pod's service account.

    Raises:
        AccessError: there is neither, or it cannot be used.
    """
    if kubeconfig := environment.get("KUBECONFIG"):
        return from_kubeconfig(Path(kubeconfig))
    if "KUBERNETES_SERVICE_HOST" in environment:
        return in_cluster(environment)
    raise AccessError("election Kubernetes needs a cluster: run in a pod, or set KUBECONFIG to a kubeconfig file")


def in_cluster(environment: Mapping[str, str]) -> Access:
    """Return the access that every pod is given."""
    host, port = environment["KUBERNETES_SERVICE_HOST"], environment.get("KUBERNETES_SERVICE_PORT", "443")
    host = f"[{host}]" if ":" in host else host
    try:
        tls = ssl.create_default_context(cafile=str(SERVICE_ACCOUNT / "ca.crt"))
    except (OSError, ssl.SSLError) as error:
        raise AccessError(f"{SERVICE_ACCOUNT}/ca.crt cannot be used ({error}); mount the service account") from error
    return Access(f"https://{host}:{port}", tls, SERVICE_ACCOUNT / "token")


def from_kubeconfig(path: Path) -> Access:
    """Return the access of a kubeconfig's current context: a token or a client certificate, no plugins.

    Raises:
        AccessError: the file is missing or lacks what it refers to, or the user needs a credential plugin.
    """
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
        context = _named(config["contexts"], config["current-context"])["context"]
        cluster = _named(config["clusters"], context["cluster"])["cluster"]
        user = _named(config["users"], context["user"])["user"]
        server = cluster["server"].rstrip("/")
    except (OSError, yaml.YAMLError, KeyError, TypeError, StopIteration) as error:
        raise AccessError(f"{path} is not a usable kubeconfig ({type(error).__name__}: {error})") from error
    if "exec" in user or "auth-provider" in user:
        raise AccessError(f"{path} asks for a credential plugin; use a token or a client certificate")
    token_file = user.get("tokenFile")
    tls = _tls(cluster, user) if server.startswith("https:") else None
    return Access(server, tls, Path(token_file) if token_file else None, user.get("token"))


def _tls(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> ssl.SSLContext:
    authority = cluster.get("certificate-authority-data")
    tls = ssl.create_default_context(
        cafile=cluster.get("certificate-authority"),
        cadata=base64.b64decode(authority).decode() if authority else None,
    )
    if cluster.get("insecure-skip-tls-verify"):
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    if "client-certificate" in user:
        tls.load_cert_chain(user["client-certificate"], user["client-key"])
    elif "client-certificate-data" in user:
        # The standard library loads certificates from files only.
        with tempfile.NamedTemporaryFile(suffix=".pem") as file:
            file.write(base64.b64decode(user["client-certificate-data"]) + b"\n")
            file.write(base64.b64decode(user["client-key-data"]))
            file.flush()
            tls.load_cert_chain(file.name)
    return tls


def _named(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(item for item in items if item["name"] == name)
