"""Scraping and alerts."""

from pydantic import Field

from outbox_api.base import Duration, LabelValue, Model, section


class PodMonitor(Model):
    """The PodMonitor of the relay, where the API exists."""

    enabled: bool = Field(default=True, description="Create a PodMonitor.")
    labels: dict[str, LabelValue] = Field(
        default_factory=dict, max_length=64, description="Labels of it.", json_schema_extra={"default": {}}
    )


class Alerts(Model):
    """The alert rules of the relay, where the API exists."""

    enabled: bool = Field(default=True, description="Create alert rules.")
    labels: dict[str, LabelValue] = Field(
        default_factory=dict,
        max_length=64,
        description="Labels of the rules' object.",
        json_schema_extra={"default": {}},
    )
    lag: Duration = Field(default="60s", description="Lag above which to alert.")
    pending: int = Field(default=10_000, ge=0, description="Unpublished events above which to alert.")
    dead_letters: int = Field(default=0, ge=0, description="Dead letters above which to alert.")


class Monitoring(Model):
    """How the relay is scraped and what alerts."""

    pod_monitor: PodMonitor = section(PodMonitor, "The PodMonitor of the relay.")
    alerts: Alerts = section(Alerts, "The alert rules of the relay.")
