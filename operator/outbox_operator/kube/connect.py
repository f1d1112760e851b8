"""Where the API server is and who the operator is there: the pod's service account, else a kubeconfig."""

import os

import kopf
from kubernetes.aio import config as loaders
from kubernetes.aio.client import ApiClient, Configuration


async def configuration() -> Configuration:
    """The connection's configuration: inside a pod its service account, else the kubeconfig (`KUBECONFIG`).

    Raises:
        ConfigException: neither is there, or it cannot be used.
    """
    loaded = Configuration()
    if os.environ.get("KUBERNETES_SERVICE_HOST") and not os.environ.get("KUBECONFIG"):
        loaders.load_incluster_config(client_configuration=loaded)  # type: ignore[no-untyped-call]
    else:
        await loaders.load_kube_config(client_configuration=loaded)  # type: ignore[no-untyped-call]
    return loaded


def api_client(loaded: Configuration) -> ApiClient:
    """A client for the connection; the caller closes it."""
    client = ApiClient(configuration=loaded)
    client.user_agent = "outbox-operator"
    return client


async def for_kopf() -> kopf.ConnectionInfo:
    """The same connection in kopf's words, read anew: a pod's token is replaced every hour."""
    loaded = await configuration()
    header = await loaded.get_api_key_with_prefix("BearerToken", alias="authorization")
    scheme, _, token = (header or "").partition(" ")
    return kopf.ConnectionInfo(
        server=loaded.host,
        ca_path=loaded.ssl_ca_cert,
        insecure=not loaded.verify_ssl,
        username=loaded.username or None,
        password=loaded.password or None,
        scheme=scheme or None,
        token=token.strip() or None,
        certificate_path=loaded.cert_file,
        private_key_path=loaded.key_file,
        proxy_url=loaded.proxy,
    )
