"""Reading of a configuration file, with every problem in it as one line: where, what, and what to do."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from outbox_api.names import API_VERSION, KIND
from outbox_api.relay_config import RelayConfig, RelaySpec
from outbox_api.spec import OutboxRelaySpec
from outbox_api.unimplemented import not_implemented
from outbox_relay.render import Renderer, RoutedSpec
from outbox_relay.routing.errors import RouteError

M = TypeVar("M", bound=BaseModel)

_ADVICE = {
    "missing": "is required: add it",
    "extra_forbidden": "is not a known field: correct its name or remove it",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: `path` is where (a field, or the file), `text` what, and what to do next."""

    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


class ConfigurationError(Exception):
    """A configuration that cannot be used.

    Attributes:
        problems: all that is wrong, in the order of the file.
    """

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


def load_relay_config(path: Path) -> RelayConfig:
    """Read the relay's configuration file.

    Raises:
        ConfigurationError: the file cannot be read, is no relay configuration, or its route is malformed.
    """
    document = _one_document(path)
    if _is_manifest(document):
        raise ConfigurationError(
            [
                Problem(
                    str(path),
                    f"is a manifest of kind {KIND}, which the operator reads; write a relay configuration with spec "
                    "and runtime (preview takes both)",
                )
            ]
        )
    config = _validated(RelayConfig, document, "")
    _check_route(config.spec)
    return config


def load_routed_spec(path: Path) -> RoutedSpec:
    """Read what a preview needs: the spec of a relay configuration, or of the one OutboxRelay among manifests.

    Raises:
        ConfigurationError: as `load_relay_config`, the file holds several OutboxRelays, or the route asks for what is
            not built yet.
    """
    documents = _documents(path)
    manifests = [document for document in documents if _is_manifest(document)]
    spec: RelaySpec | OutboxRelaySpec
    if not manifests:
        spec = load_relay_config(path).spec
    elif len(manifests) == 1:
        spec = _validated(OutboxRelaySpec, manifests[0].get("spec") or {}, "spec")
        _check_route(spec)
    else:
        raise ConfigurationError([Problem(str(path), f"holds {len(manifests)} {KIND} manifests; leave one")])
    asked = [field for field in not_implemented(spec, spec.source, spec.sink) if field.startswith("spec.route.")]
    if asked:
        raise ConfigurationError([Problem(field, "is not implemented yet: remove it") for field in asked])
    return spec


def _documents(path: Path) -> list[Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError([Problem(str(path), f"cannot be read: {error.strerror}")]) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError([Problem(str(path), "is not UTF-8 text: save it as UTF-8")]) from error
    try:
        return [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = str(path) if mark is None else f"{path}, line {mark.line + 1}"
        what = getattr(error, "problem", None) or str(error)
        raise ConfigurationError([Problem(where, f"is not valid YAML: {what}")]) from error


def _one_document(path: Path) -> Any:
    documents = _documents(path)
    if len(documents) != 1:
        raise ConfigurationError(
            [Problem(str(path), f"holds {len(documents)} YAML documents; a relay configuration is one")]
        )
    return documents[0]


def _is_manifest(document: Any) -> bool:
    return isinstance(document, dict) and document.get("kind") == KIND and document.get("apiVersion") == API_VERSION


def _validated(model: type[M], document: Any, root: str) -> M:
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise ConfigurationError([_problem(dict(details), root) for details in error.errors()]) from error


def _problem(details: dict[str, Any], root: str) -> Problem:
    path = root
    for part in details["loc"]:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
    if details["type"] == "value_error":  # raised by the contract's own checks, which say what to do
        return Problem(path or "configuration", details["msg"].removeprefix("Value error, "))
    return Problem(path or "configuration", _ADVICE.get(details["type"]) or f"{details['msg']}; correct the value")


def _check_route(spec: RoutedSpec) -> None:
    try:
        Renderer.from_spec(spec)
    except RouteError as error:
        raise ConfigurationError([Problem(error.path, error.problem)]) from error
