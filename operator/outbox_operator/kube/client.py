"""Requests to the Kubernetes API as the operator makes them.

Every request has its own time limit (the client library's default is five minutes). Before each write the `fence` is
asked, so that an operator that is no longer the leader writes nothing. Objects are plain JSON: no models, whose
construction would cost more than the request.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol
from urllib.parse import quote, urlencode

import aiohttp
from kubernetes.aio.client import ApiClient

from outbox_operator.kube.errors import ApiError, UnreachableError
from outbox_operator.kube.resources import Object, Resource, resource_of

#: Owns every field the operator applies; a constant, since another name would leave the old one's fields behind.
FIELD_MANAGER = "outbox-operator"
#: Seconds for a request, connecting included.
TIMEOUT = 15.0

_METHODS = {"get": "GET", "list": "GET", "create": "POST", "patch": "PATCH", "update": "PUT"}

_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"
_JSON = "application/json"


class Observer(Protocol):
    """Is told of each finished request: verb, resource plural, status (0 when no answer came), seconds."""

    def __call__(self, verb: str, plural: str, status: int, seconds: float) -> None:
        """Note one request."""


def _ignore(verb: str, plural: str, status: int, seconds: float) -> None:
    """Observe nothing."""


class Kube:
    """The API server."""

    def __init__(
        self,
        api: ApiClient,
        *,
        fence: Callable[[], None] = lambda: None,
        observe: Observer = _ignore,
        timeout: float = TIMEOUT,
    ) -> None:
        """Requests through a client that the caller closes.

        Args:
            api: the connection.
            fence: called before each write; raises when writing is no longer allowed.
            observe: told of each request.
            timeout: seconds for each request, connecting included.
        """
        self._api = api
        self._fence = fence
        self._observe = observe
        self._timeout = timeout

    async def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """One object, read from the server's store; None when it is not there."""
        try:
            return await self._request("get", resource, resource.path(namespace, name))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def select(self, resource: Resource, namespace: str | None, *, selector: str) -> list[Object]:
        """The objects that a label selector matches, all pages.

        Args:
            resource: their kind.
            namespace: where; None for everywhere.
            selector: as in `kubectl get -l`.
        """
        items: list[Object] = []
        query = {"labelSelector": selector, "limit": "500"}
        while True:
            page = await self._request("list", resource, resource.path(namespace), query=query)
            items += page.get("items") or []
            more = page["metadata"].get("continue")
            if not more:
                return items
            query["continue"] = more

    async def create(self, obj: Object) -> Object:
        """Create an object, or fail with 409 when one of its name is there."""
        resource = resource_of(obj)
        return await self._request(
            "create",
            resource,
            resource.path(obj["metadata"]["namespace"]),
            body=obj,
            query={"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"},
        )

    async def apply(self, obj: Object, *, uid: str) -> Object:
        """Server-side apply onto an object that was seen, and onto no other of the same name.

        Args:
            obj: what the operator wants, in full: what it applied before and leaves out now is removed.
            uid: of the object seen; the server refuses with 409 or 422 when it is another one by now.
        """
        resource = resource_of(obj)
        metadata = {**obj["metadata"], "uid": uid}
        return await self._request(
            "patch",
            resource,
            resource.path(metadata["namespace"], metadata["name"]),
            body={**obj, "metadata": metadata},
            query={"fieldManager": FIELD_MANAGER, "force": "true", "fieldValidation": "Strict"},
            content_type=_APPLY,
        )

    async def merge(self, resource: Resource, namespace: str, name: str, patch: Object) -> Object:
        """A JSON merge patch; with `metadata.resourceVersion` in it, only onto that version."""
        return await self._request(
            "patch",
            resource,
            resource.path(namespace, name),
            body=patch,
            query={"fieldManager": FIELD_MANAGER},
            content_type=_MERGE,
        )

    async def merge_status(self, resource: Resource, namespace: str, name: str, patch: Object) -> Object:
        """A JSON merge patch of the status subresource; with `metadata.uid` in it, only onto that object."""
        return await self._request(
            "patch",
            resource,
            resource.path(namespace, name, "status"),
            body=patch,
            query={"fieldManager": FIELD_MANAGER},
            content_type=_MERGE,
        )

    async def replace(self, obj: Object) -> Object:
        """PUT; with `metadata.resourceVersion` in it, only onto that version."""
        resource = resource_of(obj)
        metadata = obj["metadata"]
        return await self._request(
            "update",
            resource,
            resource.path(metadata["namespace"], metadata["name"]),
            body=obj,
            query={"fieldManager": FIELD_MANAGER},
        )

    async def read(self, path: str) -> Any:
        """A GET of any path that answers JSON, such as discovery or `/openapi/v3`."""
        return await self._send("GET", path, f"GET {path}", body=None, content_type=_JSON)

    async def _request(
        self,
        verb: str,
        resource: Resource,
        path: str,
        *,
        body: Object | None = None,
        query: Mapping[str, str] | None = None,
        content_type: str = _JSON,
    ) -> dict[str, Any]:
        if verb not in {"get", "list"}:
            self._fence()
        url = quote(path) + (f"?{urlencode(query)}" if query else "")
        loop = asyncio.get_running_loop()
        start, status = loop.time(), 0
        try:
            answer = await self._send(_METHODS[verb], url, f"{verb} {path}", body=body, content_type=content_type)
            status = 200
        except ApiError as error:
            status = error.status
            raise
        finally:
            self._observe(verb, resource.plural, status, loop.time() - start)
        return dict(answer)

    async def _send(self, method: str, url: str, what: str, *, body: Object | None, content_type: str) -> Any:
        headers = {"Content-Type": content_type, "Accept": "application/json", **self._api.default_headers}
        try:
            async with asyncio.timeout(self._timeout):
                await self._api.update_params_for_auth(headers, [], ["BearerToken"], url, method, body)
                response = await self._api.call_api(
                    method,
                    self._api.configuration.host + url,
                    header_params=headers,
                    body=body,
                    # The client library's own limit, which would otherwise be five minutes.
                    _request_timeout=self._timeout,
                )
                data: bytes = await response.read()  # type: ignore[no-untyped-call]
        except TimeoutError as error:
            raise UnreachableError(f"{what}: no answer within {self._timeout:g} s") from error
        except aiohttp.ClientError as error:
            raise UnreachableError(f"{what}: {error}") from error
        if response.status >= 400:
            raise ApiError.of(what, response.status, response.headers, data)
        return json.loads(data)
