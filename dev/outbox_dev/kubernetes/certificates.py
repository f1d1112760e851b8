"""Certificates of a control plane and of its users, made by kubeadm's own phases: what a real cluster has."""

from pathlib import Path

import yaml

from outbox_dev.kubernetes import tools
from outbox_dev.kubernetes.engine import run


def make_certificates(directory: Path, host: str, port: int) -> None:
    """Make a CA, the API server's certificate and the service-account key, as `kubeadm init` does.

    Args:
        directory: gets `kubeadm.yaml`, and in `pki/` `ca.crt`, `apiserver.crt`, `apiserver.key`, `sa.pub`, `sa.key`.
        host: the loopback address that the API server listens on.
        port: its port.
    """
    kubeadm = tools.kube("kubeadm")
    config = directory / "kubeadm.yaml"
    documents = [
        {
            "apiVersion": "kubeadm.k8s.io/v1beta4",
            "kind": "InitConfiguration",
            # kubeadm refuses loopback here; what matters are controlPlaneEndpoint and certSANs.
            "localAPIEndpoint": {"advertiseAddress": "192.0.2.1", "bindPort": port},
            # Otherwise it looks for a container runtime's socket.
            "nodeRegistration": {"name": "none", "criSocket": "unix:///nonexistent"},
        },
        {
            "apiVersion": "kubeadm.k8s.io/v1beta4",
            "kind": "ClusterConfiguration",
            # Otherwise it asks the internet which version is current.
            "kubernetesVersion": tools.kubernetes_version(),
            "clusterName": "dev",
            "certificatesDir": str(directory / "pki"),
            "controlPlaneEndpoint": f"{host}:{port}",
            "encryptionAlgorithm": "ECDSA-P256",
            "apiServer": {"certSANs": [host, "localhost"]},
        },
    ]
    config.write_text(yaml.safe_dump_all(documents), encoding="utf-8")
    for what in ("ca", "apiserver"):
        run([kubeadm, "init", "phase", "certs", what, f"--config={config}"])
    run([kubeadm, "init", "phase", "certs", "sa", f"--cert-dir={directory / 'pki'}"])


def client_kubeconfig(directory: Path, name: str, groups: tuple[str, ...]) -> str:
    """A kubeconfig with a client certificate, for the control plane whose certificates are in `directory`.

    Args:
        directory: as given to `make_certificates`.
        name: the user name.
        groups: its groups.
    """
    organizations = [f"--org={group}" for group in groups]
    config = f"--config={directory / 'kubeadm.yaml'}"
    return run([tools.kube("kubeadm"), "kubeconfig", "user", config, f"--client-name={name}", *organizations])
