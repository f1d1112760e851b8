"""Where events go: Kafka."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from outbox_api.base import Duration, LongText, Model, ShortText, Size, closed_model, rules
from outbox_api.spec.references import SecretKeyRef, Tls

BootstrapServer = Annotated[
    str, StringConstraints(pattern=r"^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}$", max_length=260)
]
TopicName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9._-]+$", min_length=1, max_length=249)]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]


class CommonOauth(Model):
    """OAuth 2.0 client credentials, as far as resource and configuration agree."""

    token_endpoint: LongText = Field(description="URL of the token endpoint.")
    client_id: ShortText = Field(description="Client id.")
    scope: ShortText | None = Field(default=None, description="Scope to ask for.")


class Oauth(CommonOauth):
    """OAuth 2.0 client credentials for OAUTHBEARER."""

    client_secret_ref: SecretKeyRef = Field(description="Secret key that holds the client secret.")


class CommonSasl(Model):
    """SASL settings, as far as resource and configuration agree."""

    mechanism: Mechanism = Field(description="SASL mechanism.")
    username: ShortText | None = Field(default=None, description="User name, for PLAIN and SCRAM.")


class Sasl(CommonSasl):
    """How the relay authenticates to Kafka."""

    model_config = closed_model(
        **rules(
            (
                "self.mechanism == 'OAUTHBEARER' ? has(self.oauth) : !has(self.oauth)",
                "spec.sink.sasl.oauth belongs to mechanism OAUTHBEARER, and to no other",
            ),
            (
                "self.mechanism == 'OAUTHBEARER' ? !has(self.passwordSecretRef) : has(self.passwordSecretRef)",
                "spec.sink.sasl.passwordSecretRef is needed with PLAIN and SCRAM, and not allowed with OAUTHBEARER",
            ),
            (
                "self.mechanism == 'OAUTHBEARER' ? !has(self.username) && !has(self.usernameSecretRef) "
                ": has(self.username) != has(self.usernameSecretRef)",
                "spec.sink.sasl needs exactly one of username and usernameSecretRef with PLAIN and SCRAM, "
                "and neither with OAUTHBEARER",
            ),
        )
    )

    username_secret_ref: SecretKeyRef | None = Field(default=None, description="Secret key that holds the user name.")
    password_secret_ref: SecretKeyRef | None = Field(default=None, description="Secret key that holds the password.")
    oauth: Oauth | None = Field(default=None, description="Client credentials, for OAUTHBEARER.")


class ExactlyOnce(Model):
    """Settings of delivery ExactlyOnce."""

    position_topic: TopicName | None = Field(
        default=None, description="Compacted topic that keeps the published position. Default: made from the name."
    )
    transactional_id_prefix: ShortText | None = Field(
        default=None, description="Prefix of the transactional ids. Default: holds the UID of the OutboxRelay."
    )
    transaction_timeout: Duration | None = Field(
        default=None, description="Time after which the broker aborts an open transaction. Unset: 15s."
    )


class Topics(Model):
    """Whether and how the relay makes topics that are missing."""

    model_config = closed_model(
        **rules(
            (
                "self.create || (!has(self.partitions) && !has(self.replicationFactor) && !has(self.config))",
                "spec.sink.topics.partitions, replicationFactor and config are used only with create: true",
            ),
        )
    )

    create: bool = Field(default=False, description="Create topics that are missing.")
    partitions: int | None = Field(
        default=None, ge=1, le=10_000, description="Partitions of a created topic. Unset: the broker's default."
    )
    replication_factor: int | None = Field(
        default=None, ge=1, le=100, description="Replicas of a created topic. Unset: the broker's default."
    )
    config: dict[str, LongText] | None = Field(
        default=None, max_length=64, description="Topic configuration of a created topic, such as retention.ms."
    )


class CommonSink(Model):
    """What the resource and the relay's configuration say in the same words about the sink."""

    bootstrap_servers: list[BootstrapServer] = Field(
        min_length=1, max_length=64, description="Kafka brokers to start from, as host:port."
    )
    delivery: Literal["AtLeastOnce", "ExactlyOnce"] = Field(
        default="AtLeastOnce",
        description=(
            "AtLeastOnce may repeat events after a crash; ExactlyOnce uses Kafka transactions. "
            "May be changed only while suspended; the position is kept."
        ),
    )
    exactly_once: ExactlyOnce | None = Field(
        default=None, description="Settings of delivery ExactlyOnce; not allowed with another delivery."
    )
    topics: Topics = Field(
        default_factory=Topics,
        description="What happens to topics that are missing.",
        json_schema_extra={"default": {}},
    )
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = Field(
        default="lz4", description="Compression of record batches."
    )
    max_request_size: Size = Field(
        default="1Mi",
        description="Largest record batch, as the broker counts it: after compression. From 1Ki to 256Mi.",
        json_schema_extra=rules(
            (
                "quantity(self).compareTo(quantity('1Ki')) >= 0 && quantity(self).compareTo(quantity('256Mi')) <= 0",
                "spec.sink.maxRequestSize must be from 1Ki to 256Mi",
            )
        ),
    )


class Sink(CommonSink):
    """The Kafka cluster that events go to."""

    model_config = closed_model(
        **rules(
            (
                "!has(self.exactlyOnce) || self.delivery == 'ExactlyOnce'",
                "spec.sink.exactlyOnce is only for delivery ExactlyOnce: remove it, or set spec.sink.delivery",
            ),
        )
    )

    tls: Tls | None = Field(default=None, description="TLS towards the brokers.")
    sasl: Sasl | None = Field(default=None, description="Authentication towards the brokers.")
