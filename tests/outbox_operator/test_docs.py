"""The reference page names every reason that a user can meet."""

import pytest

from outbox_api.reasons import ConditionReason, RelayReason
from outbox_api.status import CONDITION_TYPES
from outbox_dev.paths import repo_root
from outbox_operator.status.announcements import EventReason

PAGE = (repo_root() / "docs" / "reference" / "conditions-and-events.md").read_text()


@pytest.mark.parametrize("word", [*ConditionReason, *RelayReason, *EventReason, *CONDITION_TYPES])
def test_every_reason_and_condition_is_documented(word: str) -> None:
    assert f"`{word}`" in PAGE
