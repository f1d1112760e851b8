"""A checkpoint in a ConfigMap, guarded by its resourceVersion."""

import structlog
from pydantic import ValidationError

from outbox_api import names
from outbox_api.checkpoint import Checkpoint, Position
from outbox_api.reasons import RelayReason
from outbox_api.relay_config import Runtime
from outbox_api.report import Report
from outbox_relay.checkpoint.store import Claimed, StoreError, SupersededError, refuse_other_source, unreadable
from outbox_relay.kube.client import ApiError, KubeClient, Object, config_map_path
from outbox_relay.kube.objects import FIELD_MANAGER, bare_object
from outbox_relay.problems import Problem

log = structlog.get_logger(__name__)

_CONFLICT = 409
_NOT_FOUND = 404


class ConfigMapStore:
    """Keeps the checkpoint in the ConfigMap that the operator creates; every write carries the last resourceVersion."""

    def __init__(self, client: KubeClient, runtime: Runtime, shard: int) -> None:
        self._client = client
        self._runtime = runtime
        self._name = names.checkpoint(runtime.name, shard)
        self._path = config_map_path(runtime.namespace, self._name)
        self._report_path = config_map_path(runtime.namespace, names.report(runtime.name, shard))
        self._claimed = Checkpoint()
        self._object: Object = {}
        self._missing = False

    async def claim(self, source: str) -> Claimed:
        """Raise the epoch and return the checkpoint; see `CheckpointStore`."""
        try:
            current = await self._client.get(self._path)
        except ApiError as error:
            self._missing = error.status == _NOT_FOUND
            raise self._error(error) from error
        self._missing = False
        found = self._parse(current)
        refuse_other_source(found, source, f"ConfigMap {self._name}")
        lost = None if found.position else await self._lost(current)
        claimed = found.model_copy(update={"epoch": found.epoch + 1, "source": source})
        await self._put(current, claimed)
        return Claimed(claimed, lost)

    async def write(self, position: Position) -> None:
        """Write the position; see `CheckpointStore`."""
        checkpoint = self._claimed.model_copy(update={"position": position})
        try:
            await self._put(self._object, checkpoint)
        except StoreError as error:
            if not isinstance(error.__cause__, ApiError) or error.__cause__.status not in {_CONFLICT, _NOT_FOUND}:
                raise
            await self._put(await self._current(), checkpoint)

    def was_missing(self) -> bool:
        """Say whether the ConfigMap was found missing; see `CheckpointStore`."""
        return self._missing

    async def _current(self) -> Object:
        """Return the object as it is now, made again if it is gone.

        Raises:
            SupersededError: a later leader has claimed it.
        """
        try:
            current = await self._client.get(self._path)
        except ApiError as error:
            if error.status != _NOT_FOUND:
                raise self._error(error) from error
            log.warning("the checkpoint is gone; creating it again", configmap=self._name)
            self._missing = True
            body = bare_object("v1", "ConfigMap", self._name, self._runtime)
            try:
                current = await self._client.apply(self._path, body, FIELD_MANAGER)
            except ApiError as refused:
                raise self._error(refused) from refused
        found = self._parse(current)
        if found.epoch > self._claimed.epoch:
            raise SupersededError(
                f"ConfigMap {self._name} was claimed by a later leader "
                f"(epoch {found.epoch}, ours {self._claimed.epoch})"
            )
        return current

    async def _put(self, current: Object, checkpoint: Checkpoint) -> None:
        text = checkpoint.model_dump_json(by_alias=True, exclude_none=True)
        body = {**current, "data": {**(current.get("data") or {}), names.CHECKPOINT_KEY: text}}
        try:
            self._object = await self._client.replace(self._path, body)
        except ApiError as error:
            raise self._error(error) from error
        self._claimed = checkpoint

    async def _lost(self, current: Object) -> str | None:
        """Return the position that is known to have existed: by the operator's annotation, or by the last report."""
        annotations = current["metadata"].get("annotations") or {}
        if lost := annotations.get(names.ANNOTATION_POSITION_LOST):
            return str(lost)
        try:
            report = await self._client.get(self._report_path)
        except ApiError as error:
            if error.status == _NOT_FOUND:
                return None
            raise self._error(error) from error
        text = (report.get("data") or {}).get(names.REPORT_KEY)
        if text is None:
            return None
        try:
            return Report.model_validate_json(text).position
        except ValidationError:
            return None  # of another version: it says nothing that we could hold against a first start

    def _parse(self, current: Object) -> Checkpoint:
        text = (current.get("data") or {}).get(names.CHECKPOINT_KEY)
        if text is None:
            return Checkpoint()
        try:
            return Checkpoint.model_validate_json(text)
        except ValidationError as error:
            raise unreadable(f"ConfigMap {self._name}", error) from None

    def _error(self, error: ApiError) -> StoreError:
        return StoreError(
            Problem(
                RelayReason.CHECKPOINT_UNAVAILABLE,
                f"the checkpoint ConfigMap {self._runtime.namespace}/{self._name} cannot be used: {error}",
            )
        )
