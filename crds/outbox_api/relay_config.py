"""The relay's own configuration: the same spec with files in place of Secret references, and where it runs."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from outbox_api.base import Model, ShortText, section
from outbox_api.spec.references import SecretKeyRef, Tls
from outbox_api.spec.root import CommonSpec, OutboxRelaySpec
from outbox_api.spec.sink import CommonOauth, CommonSasl, CommonSink, Sasl
from outbox_api.spec.source import CommonSource

FilePath = Annotated[str, StringConstraints(min_length=1, max_length=4096)]


class TlsFiles(Model):
    """TLS, by files in PEM. An empty object trusts the system's certificate authorities."""

    ca_file: FilePath | None = Field(default=None, description="Certificate authorities to trust.")
    client_certificate_file: FilePath | None = Field(default=None, description="Client certificate chain.")
    client_private_key_file: FilePath | None = Field(default=None, description="Private key of the certificate.")


class RelaySource(CommonSource):
    """The source, with the connection string in a file."""

    uri_file: FilePath = Field(description="File that holds the MongoDB connection string.")
    tls: TlsFiles | None = None


class OauthFiles(CommonOauth):
    """OAuth 2.0 client credentials, with the secret in a file."""

    client_secret_file: FilePath


class SaslFiles(CommonSasl):
    """SASL settings, with secrets in files."""

    username_file: FilePath | None = None
    password_file: FilePath | None = None
    oauth: OauthFiles | None = None


class RelaySink(CommonSink):
    """The sink, with credentials in files."""

    tls: TlsFiles | None = None
    sasl: SaslFiles | None = None


class RelaySpec(CommonSpec):
    """The spec as the relay reads it."""

    source: RelaySource
    sink: RelaySink


class CheckpointFile(Model):
    """A checkpoint outside Kubernetes."""

    file: FilePath = Field(description="File that keeps the position.")


class OwnerReference(Model):
    """The OutboxRelay that owns what the relay has to create again."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = True
    block_owner_deletion: bool = True


class Listen(Model):
    """Where /livez, /readyz and /metrics are served."""

    host: str | None = Field(default="127.0.0.1", description="Address to bind; null: every address.")
    port: int = Field(default=8080, ge=0, le=65535, description="Port; 0: any free one, which the log names.")


class Runtime(Model):
    """Where the relay runs, and how it elects its leader and keeps its position."""

    name: ShortText = Field(description="Name of the OutboxRelay, or of the relay on a laptop.")
    namespace: ShortText = Field(default="default", description="Namespace of the OutboxRelay.")
    uid: ShortText | None = Field(default=None, description="UID of the OutboxRelay.")
    election: Literal["None", "Kubernetes", "MongoDB"] = Field(default="None", description="How the leader is elected.")
    checkpoint: CheckpointFile | None = Field(default=None, description="The checkpoint's file, outside Kubernetes.")
    labels: dict[str, str] = Field(default_factory=dict, description="Labels for objects the relay creates again.")
    owner_reference: OwnerReference | None = Field(default=None, description="Owner of such objects.")
    listen: Listen = section(Listen, "Where health and metrics are served.")


class RelayConfig(Model):
    """The relay's configuration file.

    Raises:
        ValueError: the checkpoint has no place: no file is named and no Kubernetes election is asked for.
    """

    spec: RelaySpec
    runtime: Runtime

    @model_validator(mode="after")
    def _checkpoint_has_a_place(self) -> "RelayConfig":
        if self.runtime.election == "Kubernetes":
            if self.runtime.checkpoint is not None:
                raise ValueError("runtime.checkpoint.file is for election None or MongoDB: remove it")
        elif self.runtime.checkpoint is None:
            raise ValueError("runtime.checkpoint.file is missing: name the file that keeps the position")
        return self


@dataclass(frozen=True)
class MountedKey:
    """One key of a Secret or ConfigMap that the relay reads as a file."""

    kind: Literal["Secret", "ConfigMap"]
    name: str
    key: str

    @property
    def directory(self) -> str:
        """Directory under the mount root that holds the keys of the object."""
        return f"{self.kind.lower()}-{self.name}"


class _Mounts:
    """Collects the keys that a spec names and gives each its path."""

    def __init__(self, root: str) -> None:
        self._root = root
        self.keys: list[MountedKey] = []

    def path(self, kind: Literal["Secret", "ConfigMap"], name: str, key: str) -> str:
        mounted = MountedKey(kind, name, key)
        if mounted not in self.keys:
            self.keys.append(mounted)
        return f"{self._root}/{mounted.directory}/{key}"

    def secret(self, ref: SecretKeyRef | None) -> str | None:
        return None if ref is None else self.path("Secret", ref.name, ref.key)

    def tls(self, tls: Tls | None) -> TlsFiles | None:
        if tls is None:
            return None
        ca, certificate = tls.ca_ref, tls.client_certificate_secret_ref
        return TlsFiles(
            ca_file=ca and self.path(ca.kind, ca.name, ca.key),
            client_certificate_file=certificate and self.path("Secret", certificate.name, certificate.certificate_key),
            client_private_key_file=certificate and self.path("Secret", certificate.name, certificate.private_key_key),
        )

    def sasl(self, sasl: Sasl | None) -> SaslFiles | None:
        if sasl is None:
            return None
        oauth = sasl.oauth and OauthFiles(
            **_common(sasl.oauth, CommonOauth),
            client_secret_file=self.path("Secret", sasl.oauth.client_secret_ref.name, sasl.oauth.client_secret_ref.key),
        )
        return SaslFiles(
            **_common(sasl, CommonSasl),
            username_file=self.secret(sasl.username_secret_ref),
            password_file=self.secret(sasl.password_secret_ref),
            oauth=oauth,
        )


def _common(model: Model, base: type[Model]) -> dict[str, object]:
    """Return the fields that `model` has from `base`, by attribute name."""
    return {name: getattr(model, name) for name in base.model_fields}


def to_relay_spec(spec: OutboxRelaySpec, mount_root: str) -> tuple[RelaySpec, list[MountedKey]]:
    """Return the relay's form of `spec` and the keys to mount, each at `<mount_root>/<kind>-<name>/<key>`."""
    mounts = _Mounts(mount_root)
    uri = spec.source.uri_secret_ref
    source = RelaySource(
        **_common(spec.source, CommonSource),
        uri_file=mounts.path("Secret", uri.name, uri.key),
        tls=mounts.tls(spec.source.tls),
    )
    sink = RelaySink(**_common(spec.sink, CommonSink), tls=mounts.tls(spec.sink.tls), sasl=mounts.sasl(spec.sink.sasl))
    return RelaySpec(**_common(spec, CommonSpec), source=source, sink=sink), mounts.keys
