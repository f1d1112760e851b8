"""`/livez`, `/readyz` and `/metrics`."""

from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

#: Says what is wrong; None when nothing is.
Check = Callable[[], str | None]


def application(
    *, live: Mapping[str, Check], ready: Mapping[str, Check], registry: CollectorRegistry
) -> web.Application:
    """The web application; it runs in the operator's event loop, so that a stuck loop answers nothing.

    Args:
        live: checks by name; one that fails asks for a restart.
        ready: checks by name; one that fails tells that this process could not lead.
        registry: the metrics.
    """

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    found = web.Application()
    found.add_routes(
        [web.get("/livez", _answer(live)), web.get("/readyz", _answer(ready)), web.get("/metrics", metrics)]
    )
    return found


def _answer(checks: Mapping[str, Check]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(_: web.Request) -> web.StreamResponse:
        problems = {name: problem for name, check in checks.items() if (problem := check()) is not None}
        if problems:
            text = "".join(f"{name}: {problem}\n" for name, problem in problems.items())
            return web.Response(status=503, text=text)
        return web.Response(text="ok\n")

    return answer
