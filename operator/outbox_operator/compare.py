"""Whether a live object already holds what was rendered.

Only the rendered fields are looked at: the server adds defaults, and other programs may own further fields. Lists whose
items server-side apply merges by a key are compared by that key, and items that others added are left alone; all other
lists are one value. Fields that an earlier rendering had and this one has not are found by the hash of the rendering
(`outbox_operator.render.metadata`), since a live object does not tell them from defaults.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

# The `x-kubernetes-list-map-keys` of the lists that the operator renders, by field name (Kubernetes API, apps/v1 and
# meta/v1). A field's name is enough here: no two rendered kinds use one name for lists of different keys.
_MERGE_KEYS: dict[str, tuple[str, ...]] = {
    "containers": ("name",),
    "env": ("name",),
    "imagePullSecrets": ("name",),
    "ownerReferences": ("uid",),
    "ports": ("containerPort", "protocol"),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}
# Maps whose values are quantities: `1000m` and `1` are the same.
_QUANTITIES = frozenset({"requests", "limits"})
_SUFFIXES = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    "k": Decimal(10) ** 3,
    "M": Decimal(10) ** 6,
    "G": Decimal(10) ** 9,
    "T": Decimal(10) ** 12,
    "P": Decimal(10) ** 15,
    "E": Decimal(10) ** 18,
    "Ki": Decimal(2) ** 10,
    "Mi": Decimal(2) ** 20,
    "Gi": Decimal(2) ** 30,
    "Ti": Decimal(2) ** 40,
    "Pi": Decimal(2) ** 50,
    "Ei": Decimal(2) ** 60,
}


def differences(rendered: Any, live: Any, path: str = "") -> list[str]:
    """The paths at which the live object does not hold what was rendered; empty when it holds all of it.

    Args:
        rendered: JSON value that is wanted.
        live: JSON value that is there; None when nothing is.
        path: where in the object both stand, such as `spec.template`.
    """
    if isinstance(rendered, Mapping):
        return _map_differences(rendered, live if isinstance(live, Mapping) else {}, path)
    if isinstance(rendered, Sequence) and not isinstance(rendered, str):
        keys = _MERGE_KEYS.get(path.rsplit(".", 1)[-1])
        items = live if isinstance(live, Sequence) and not isinstance(live, str) else []
        if keys is not None:
            return _keyed_differences(rendered, items, keys, path)
        if len(rendered) != len(items):
            return [path]
        return [
            found
            for index, (want, have) in enumerate(zip(rendered, items, strict=True))
            for found in differences(want, have, f"{path}[{index}]")
        ]
    return [] if rendered == live and type(rendered) is type(live) else [path]


def _map_differences(rendered: Mapping[str, Any], live: Mapping[str, Any], path: str) -> list[str]:
    quantities = path.rsplit(".", 1)[-1] in _QUANTITIES
    found: list[str] = []
    for name, want in rendered.items():
        inner = f"{path}.{name}" if path else name
        if quantities and name in live and _same_quantity(want, live[name]):
            continue
        # Empty values are not stored by the server, or are stored as absent.
        if name not in live and want in ({}, [], None):
            continue
        found += differences(want, live.get(name), inner)
    return found


def _keyed_differences(rendered: Sequence[Any], live: Sequence[Any], keys: tuple[str, ...], path: str) -> list[str]:
    by_key = {_key(item, keys): item for item in live if isinstance(item, Mapping)}
    return [
        found
        for item in rendered
        for found in differences(item, by_key.get(_key(item, keys)), f"{path}[{_key(item, keys)[0]}]")
    ]


def _key(item: Mapping[str, Any], keys: tuple[str, ...]) -> tuple[Any, ...]:
    # `protocol` is the one key with a default.
    return tuple(item.get(key, "TCP" if key == "protocol" else None) for key in keys)


def _same_quantity(one: Any, other: Any) -> bool:
    try:
        return quantity(str(one)) == quantity(str(other))
    except ValueError:
        return bool(one == other)


def quantity(text: str) -> Decimal:
    """The number a Kubernetes quantity such as `100m`, `1.5Gi` or `1e3` stands for.

    Raises:
        ValueError: it is no quantity.
    """
    number = text.rstrip("numkKMGTPEi")
    suffix = text[len(number) :]
    try:
        # `1e3` and `1E3` are exponents; a trailing E is the suffix of 10^18.
        return Decimal(number) * _SUFFIXES[suffix]
    except (InvalidOperation, KeyError) as error:
        raise ValueError(f"{text!r} is not a quantity") from error
