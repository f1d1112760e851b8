"""Running one piece of work together with what has to run beside it."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import structlog

log = structlog.get_logger(__name__)

T = TypeVar("T")


async def run_with(main: Coroutine[Any, Any, T], *beside: Coroutine[Any, Any, Any]) -> T:
    """Return the result of `main` while the others run; they are cancelled when it is done.

    Raises:
        Exception: what `main` raised, or what ended one of the others, which cancels `main`.
    """
    main_task = asyncio.create_task(main)
    others = [asyncio.create_task(coroutine) for coroutine in beside]
    tasks = {main_task, *others}
    try:
        while not main_task.done():
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in [other for other in others if other.done()]:
                task.result()
                others.remove(task)
                tasks.discard(task)
        return main_task.result()
    finally:
        await _end([main_task, *others])


async def first_of(*events: asyncio.Event, within: float | None = None) -> None:
    """Wait until one of the events is set, or `within` seconds."""
    tasks = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED, timeout=within)
    finally:
        for task in tasks:
            task.cancel()


async def unless(stop: asyncio.Event, main: Coroutine[Any, Any, T]) -> T | None:
    """Return the result of `main`, or None if `stop` is set before it is done, which cancels it."""
    task = asyncio.create_task(main)
    stopped = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait([task, stopped], return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        await _end([task, stopped])


async def _end(tasks: "list[asyncio.Task[Any]]") -> None:
    """Cancel what still runs and wait for it; what it raises on its way out is logged, since nobody awaits it."""
    running = [task for task in tasks if not task.done()]
    for task in running:
        task.cancel()
    if running:
        await asyncio.wait(running)
    for task in running:
        if not task.cancelled() and (error := task.exception()) is not None:
            log.debug("ended with an error", error=type(error).__name__, text=str(error))
