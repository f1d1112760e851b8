from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from pymongo import AsyncMongoClient, MongoClient
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.database import Database

from outbox_dev.mongo import MongoDB


@pytest.fixture
def shop(mongodb: MongoDB, database: str) -> Iterator[Database[dict[str, Any]]]:
    client: MongoClient[dict[str, Any]] = MongoClient(mongodb.uri)
    with client:
        yield client[database]
        client.drop_database(database)


@pytest.fixture
async def async_shop(mongodb: MongoDB, database: str) -> AsyncIterator[AsyncDatabase[dict[str, Any]]]:
    client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(mongodb.uri)
    async with client:
        yield client[database]
        await client.drop_database(database)
