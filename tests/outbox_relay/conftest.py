from collections.abc import Callable
from typing import Any

import pytest

from outbox_api.spec import OutboxRelaySpec
from outbox_relay.render import Renderer

MakeRenderer = Callable[..., Renderer]


@pytest.fixture
def make_renderer() -> MakeRenderer:
    """Build a renderer from `spec.route` and `spec.source.fields`, each in its wire form."""

    def make(*, fields: dict[str, Any] | None = None, **route: Any) -> Renderer:
        source = {"uriSecretRef": {"name": "mongo", "key": "uri"}, "database": "shop", "collection": "outbox"}
        return Renderer.from_spec(
            OutboxRelaySpec.model_validate(
                {
                    "source": source | {"fields": fields or {}},
                    "sink": {"bootstrapServers": ["kafka:9092"]},
                    "route": route,
                }
            )
        )

    return make
