"""Rewriting of a topic's name by a regular expression that matches the whole of it.

Pattern and replacement are written as for Kafka Connect's routers, that is in Java's syntax: groups are `(?<name>…)`,
the replacement says `$1` or `${name}`, and a backslash takes the next character literally.
"""

import re
from collections.abc import Callable
from functools import lru_cache

from outbox_relay.routing.errors import RouteError

_JAVA_GROUP = re.compile(r"(\\.)|\(\?<([a-zA-Z][a-zA-Z0-9]*)>", re.DOTALL)
_JAVA_BACK_REFERENCE = re.compile(r"(\\[^k])|\\k<([a-zA-Z][a-zA-Z0-9]*)>", re.DOTALL)
_REPLACEMENT_TOKEN = re.compile(r"\\(.)|\$\{([a-zA-Z][a-zA-Z0-9]*)\}|\$([0-9])|([^\\$]+)", re.DOTALL)
_REMEMBERED_TOPICS = 4096


def topic_rewrite(pattern: str, replacement: str) -> Callable[[str], str]:
    """Return the function that rewrites a topic; one that the pattern does not match as a whole is returned unchanged.

    Raises:
        RouteError: the pattern is no regular expression here, or the replacement names a group it has not.
    """
    try:
        compiled = re.compile(_python_pattern(pattern))
    except re.error as error:
        raise RouteError(
            "spec.route.topicRewrite.pattern", f"{pattern!r} is no regular expression that can be used: {error}"
        ) from error
    expand = _replacement(replacement, compiled)

    @lru_cache(maxsize=_REMEMBERED_TOPICS)
    def rewrite(topic: str) -> str:
        match = compiled.fullmatch(topic)
        return topic if match is None else expand(match)

    return rewrite


def _python_pattern(pattern: str) -> str:
    named = _JAVA_GROUP.sub(lambda found: found[1] or f"(?P<{found[2]}>", pattern)
    return _JAVA_BACK_REFERENCE.sub(lambda found: found[1] or f"(?P={found[2]})", named)


def _replacement(source: str, pattern: "re.Pattern[str]") -> "Callable[[re.Match[str]], str]":
    """Compile a replacement. As in Java, `$12` is group 12 if there is one, else group 1 followed by a 2."""
    parts: list[str | int] = []
    position = 0
    while position < len(source):
        token = _REPLACEMENT_TOKEN.match(source, position)
        if token is None:
            raise _unusable(source, "has a $ or \\ without what it needs; write \\$ for a dollar sign")
        position = token.end()
        escaped, name, digit, plain = token.groups()
        if name is not None:
            if name not in pattern.groupindex:
                raise _unusable(source, f"names group {name}, which the pattern has not")
            parts.append(pattern.groupindex[name])
        elif digit is not None:
            number = int(digit)
            if number > pattern.groups:
                raise _unusable(source, f"names group {number}, which the pattern has not")
            while source[position : position + 1].isdecimal() and int(f"{number}{source[position]}") <= pattern.groups:
                number = int(f"{number}{source[position]}")
                position += 1
            parts.append(number)
        else:
            parts.append(escaped or plain)

    def expand(match: "re.Match[str]") -> str:
        return "".join((match[part] or "") if isinstance(part, int) else part for part in parts)

    return expand


def _unusable(source: str, problem: str) -> RouteError:
    return RouteError("spec.route.topicRewrite.replacement", f"{source!r} {problem}")
