"""Structured logs: one JSON object a line, without secrets."""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any

import orjson
import structlog

from outbox_relay.observe.scrub import scrub

_QUIET_LOGGERS = ("aiokafka", "pymongo", "asyncio")
"""Libraries that tell of every failed attempt; the relay tells of them itself, in its own words."""


def configure_logs(level: int = logging.INFO) -> None:
    """Send all logs of the process to standard output as JSON."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _scrub_texts,
            structlog.processors.JSONRenderer(serializer=_dumps),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(sys.stdout),
        cache_logger_on_first_use=True,
    )
    handler = _ToStructlog()
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    for name in _QUIET_LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)


class _ToStructlog(logging.Handler):
    """Passes what libraries log on to structlog, so that there is one format."""

    def emit(self, record: logging.LogRecord) -> None:
        structlog.get_logger(record.name).log(record.levelno, record.getMessage(), exc_info=record.exc_info)


def _scrub_texts(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = scrub(value)
    return event


def _dumps(value: Any, **_options: Any) -> str:
    return orjson.dumps(value, default=str).decode()
