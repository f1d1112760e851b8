"""The comparison that decides whether a write is needed."""

from decimal import Decimal
from typing import Any

import pytest

from outbox_operator.compare import differences, quantity


@pytest.mark.parametrize(
    ("rendered", "live"),
    [
        ({"a": 1}, {"a": 1, "added": "by the server"}),
        ({"a": {}}, {}),
        ({"a": []}, {"b": 1}),
        ({"rules": [{"verbs": ["get"]}]}, {"rules": [{"verbs": ["get"]}]}),
        ({"limits": {"cpu": "1000m", "memory": "1024Ki"}}, {"limits": {"cpu": "1", "memory": "1Mi"}}),
        ({"containers": [{"name": "relay"}]}, {"containers": [{"name": "sidecar"}, {"name": "relay", "stdin": True}]}),
        ({"ports": [{"containerPort": 80}]}, {"ports": [{"containerPort": 80, "protocol": "TCP"}]}),
        ({"metadata": {"labels": {"x": "y"}}}, {"metadata": {"labels": {"x": "y", "theirs": "z"}}}),
    ],
)
def test_what_the_server_or_others_add_is_no_difference(rendered: Any, live: Any) -> None:
    assert differences(rendered, live) == []


@pytest.mark.parametrize(
    ("rendered", "live", "where"),
    [
        ({"a": 1}, {"a": 2}, ["a"]),
        ({"a": 1}, {}, ["a"]),
        ({"a": 1}, None, ["a"]),
        ({"a": True}, {"a": 1}, ["a"]),
        ({"a": {"b": "x"}}, {"a": {"b": "y"}}, ["a.b"]),
        ({"rules": [{"verbs": ["get"]}]}, {"rules": [{"verbs": ["get", "list"]}]}, ["rules[0].verbs"]),
        ({"rules": []}, {"rules": [{"verbs": ["*"]}]}, ["rules"]),
        ({"limits": {"cpu": "1"}}, {"limits": {"cpu": "2"}}, ["limits.cpu"]),
        ({"limits": {"cpu": "nonsense"}}, {"limits": {"cpu": "2"}}, ["limits.cpu"]),
        (
            {"containers": [{"name": "relay", "env": [{"name": "A", "value": "1"}]}]},
            {"containers": [{"name": "relay", "env": [{"name": "A", "value": "2"}]}]},
            ["containers[relay].env[A].value"],
        ),
        ({"volumes": [{"name": "tmp"}]}, {"volumes": []}, ["volumes[tmp].name"]),
    ],
)
def test_a_difference_names_its_place(rendered: Any, live: Any, where: list[str]) -> None:
    assert differences(rendered, live) == where


@pytest.mark.parametrize(
    ("text", "number"),
    [("100m", "0.1"), ("128Mi", "134217728"), ("1.5Gi", "1610612736"), ("1e3", "1000"), ("2k", "2000"), ("3E", "3e18")],
)
def test_quantities_are_read_as_kubernetes_reads_them(text: str, number: str) -> None:
    assert quantity(text) == Decimal(number)


@pytest.mark.parametrize("text", ["", "Mi", "one", "1Xi"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        quantity(text)
