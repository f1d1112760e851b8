"""A client for namespaced objects of the Kubernetes API: get, replace, apply; each call within its own time."""

import asyncio
from typing import TYPE_CHECKING, Any

import orjson

from outbox_relay.kube.access import Access

if TYPE_CHECKING:
    import aiohttp

Object = dict[str, Any]

CALL_SECONDS = 5.0
_JSON = "application/json"
_APPLY = "application/apply-patch+yaml"  # JSON is YAML


class ApiError(Exception):
    """The API server refused a call, or did not answer.

    Attributes:
        status: HTTP status; 0 when there was no answer.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class KubeClient:
    """Calls one API server. Close it when done."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._session: aiohttp.ClientSession | None = None

    async def get(self, path: str, limit: float = CALL_SECONDS) -> Object:
        """Return the object at an API path such as `/api/v1/namespaces/shop/configmaps/x`.

        Raises:
            ApiError: status 404 if there is none.
        """
        return await self._call("GET", path, None, _JSON, limit)

    async def replace(self, path: str, body: Object, limit: float = CALL_SECONDS) -> Object:
        """Replace an object by `body`, whose resourceVersion makes a concurrent change a conflict.

        Raises:
            ApiError: status 409 if it was changed meanwhile.
        """
        return await self._call("PUT", path, body, _JSON, limit)

    async def apply(self, path: str, body: Object, manager: str, limit: float = CALL_SECONDS) -> Object:
        """Apply an object server-side, which creates it if it is absent.

        Raises:
            ApiError: status 409 if another manager owns a field of `body`.
        """
        return await self._call("PATCH", f"{path}?fieldManager={manager}", body, _APPLY, limit)

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def _call(self, method: str, path: str, body: Object | None, content_type: str, limit: float) -> Object:
        import aiohttp  # only relays in a cluster pay for its 8 MiB

        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=self._access.tls or False, limit=4), auto_decompress=True
            )
        try:
            headers = {"Accept": _JSON, "Content-Type": content_type, "User-Agent": "outbox-relay"}
            if token := self._access.bearer():
                headers["Authorization"] = f"Bearer {token}"
            async with (
                asyncio.timeout(limit),
                self._session.request(
                    method,
                    self._access.server + path,
                    data=None if body is None else orjson.dumps(body),
                    headers=headers,
                ) as response,
            ):
                content = await response.read()
        except (aiohttp.ClientError, OSError) as error:
            raise ApiError(0, f"the API server at {self._access.server} does not answer ({error})") from error
        except TimeoutError:
            raise ApiError(0, f"the API server at {self._access.server} did not answer within {limit:g} s") from None
        return _object(response.status, content)


def _object(status: int, content: bytes) -> Object:
    try:
        answer: Object = orjson.loads(content)
    except orjson.JSONDecodeError:
        answer = {}
    if status >= 300:
        raise ApiError(status, answer.get("message") or f"HTTP {status}")
    return answer


def config_map_path(namespace: str, name: str) -> str:
    """Return the API path of a ConfigMap."""
    return f"/api/v1/namespaces/{namespace}/configmaps/{name}"


def lease_path(namespace: str, name: str) -> str:
    """Return the API path of a Lease."""
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"
