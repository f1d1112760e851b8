"""References to Secrets and ConfigMaps in the relay's own namespace. The operator mounts them and never reads them."""

from typing import Literal

from pydantic import Field

from outbox_api.base import DataKey, Model, ObjectName


class SecretKeyRef(Model):
    """One key of a Secret."""

    name: ObjectName = Field(description="Name of the Secret, in the namespace of the OutboxRelay.")
    key: DataKey = Field(description="Key in the Secret's data.")


class CaRef(Model):
    """A bundle of certificate authorities, in PEM."""

    kind: Literal["Secret", "ConfigMap"] = Field(description="Kind of the object that holds the bundle.")
    name: ObjectName = Field(description="Name of that object, in the namespace of the OutboxRelay.")
    key: DataKey = Field(description="Key whose value is the PEM bundle.")


class ClientCertificateSecretRef(Model):
    """A client certificate and its private key, in PEM, in one Secret."""

    name: ObjectName = Field(description="Name of the Secret, in the namespace of the OutboxRelay.")
    certificate_key: DataKey = Field(description="Key whose value is the certificate chain, usually tls.crt.")
    private_key_key: DataKey = Field(description="Key whose value is the private key, usually tls.key.")


class Tls(Model):
    """Transport security. Its presence turns TLS on; an empty object trusts the system's certificate authorities."""

    ca_ref: CaRef | None = Field(default=None, description="Certificate authorities to trust instead of the system's.")
    client_certificate_secret_ref: ClientCertificateSecretRef | None = Field(
        default=None, description="Client certificate to present (mutual TLS)."
    )
