"""What can go wrong between the operator and the Kubernetes API."""

import json
from collections.abc import Mapping
from typing import Any


class KubeError(Exception):
    """A request did not get the answer it asked for."""


class UnreachableError(KubeError):
    """No answer came: refused, cut, or not in time. Whether a write was carried out is unknown."""


class ApiError(KubeError):
    """The server answered with an error.

    Attributes:
        status: the HTTP status.
        reason: the machine-readable reason of the server's `Status`, such as `AlreadyExists`; may be empty.
        message: the server's text, for people.
        causes: the fields the server complains about, with its words.
        retry_after: seconds the server asks to wait; None when it does not say.
    """

    def __init__(
        self,
        what: str,
        *,
        status: int,
        reason: str = "",
        message: str = "",
        causes: tuple[tuple[str, str], ...] = (),
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{what}: {status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.causes = causes
        self.retry_after = retry_after

    @classmethod
    def of(cls, what: str, status: int, headers: Mapping[str, str], body: bytes) -> "ApiError":
        """The error in an answer whose body should be a `Status`, and need not be."""
        details: dict[str, Any] = {}
        try:
            parsed = json.loads(body)
        except ValueError:
            parsed = {"message": body.decode(errors="replace")[:1000]}
        if not isinstance(parsed, dict):
            parsed = {"message": str(parsed)}
        details = parsed.get("details") or {}
        after = headers.get("Retry-After") or details.get("retryAfterSeconds")
        return cls(
            what,
            status=status,
            reason=str(parsed.get("reason") or ""),
            message=str(parsed.get("message") or ""),
            causes=tuple((str(c.get("field", "")), str(c.get("message", ""))) for c in details.get("causes") or ()),
            retry_after=float(after) if after and str(after).isdigit() else None,
        )

    @property
    def is_final(self) -> bool:
        """Whether the same request would be refused again, so that only a change of the object or of rights helps.

        A 500 is taken for final when the server says that it could not use the object: an unknown field in a
        server-side apply is answered so.
        """
        if self.status == 500:
            return "failed to create typed patch object" in self.message or "field not declared" in self.message
        return self.status in {400, 403, 405, 413, 415, 422}
