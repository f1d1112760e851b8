"""The checkpoint in a file: replaced as a whole, by the latest claimant only."""

from pathlib import Path

import pytest

from outbox_api.checkpoint import Position
from outbox_relay.checkpoint.file import FileStore
from outbox_relay.checkpoint.store import StoreError, SupersededError
from outbox_relay.problems import StalledError

POSITION = Position(cluster_time="5.1", token="{}")


async def test_each_claim_raises_the_epoch_and_finds_the_position(tmp_path: Path) -> None:
    path = tmp_path / "state" / "checkpoint.json"
    first = FileStore(path)
    assert (await first.claim("shop.outbox")).checkpoint.epoch == 1
    await first.write(POSITION)
    claimed = (await FileStore(path).claim("shop.outbox")).checkpoint
    assert (claimed.epoch, claimed.position, claimed.source) == (2, POSITION, "shop.outbox")


async def test_an_older_claimant_cannot_write(tmp_path: Path) -> None:
    older, later = FileStore(tmp_path / "c.json"), FileStore(tmp_path / "c.json")
    await older.claim("shop.outbox")
    await later.claim("shop.outbox")
    with pytest.raises(SupersededError, match="epoch 2, ours 1"):
        await older.write(POSITION)


async def test_the_position_of_another_source_is_refused(tmp_path: Path) -> None:
    keeper = FileStore(tmp_path / "c.json")
    await keeper.claim("shop.outbox")
    await keeper.write(POSITION)
    with pytest.raises(StalledError, match=r"of shop.outbox, not of shop.other"):
        await FileStore(tmp_path / "c.json").claim("shop.other")


async def test_a_text_that_is_no_checkpoint_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text("{")
    with pytest.raises(StalledError, match="does not hold a checkpoint"):
        await FileStore(path).claim("shop.outbox")
    assert path.read_text() == "{"


async def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="make its directory writable"):
        await FileStore(tmp_path / "file" / "c.json").claim("shop.outbox")
