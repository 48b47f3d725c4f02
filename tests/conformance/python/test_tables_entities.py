"""Entities: insert, get, update, merge, delete, conditions, limits."""

import datetime
import uuid

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import (
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.data.tables import EdmType, EntityProperty, UpdateMode

from answers import code, keys


def test_an_entity_comes_back_as_it_was_inserted(table):
    entity = {
        "PartitionKey": "p",
        "RowKey": "r",
        "Text": "Grüße ' \" \\ \n 😀",
        "Empty": "",
        "Whole": 42,
        "Negative": -2147483648,
        "Large": EntityProperty(2**53 + 1, EdmType.INT64),
        "Real": 2.5,
        "WholeReal": 3.0,
        "Infinite": float("inf"),
        "Yes": True,
        "No": False,
        "Raw": b"\x00\x01\xff",
        "Id": uuid.UUID("c9da6455-213d-42c9-9a79-3e9149a57833"),
        "At": datetime.datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=datetime.timezone.utc),
    }
    table.create_entity(entity)
    found = table.get_entity("p", "r")
    for name, value in entity.items():
        assert found[name] == value, name
        assert type(found[name]) is type(value) or name == "At", name
    assert set(found) == set(entity)


def test_not_a_number_comes_back(table):
    table.create_entity({"PartitionKey": "p", "RowKey": "r", "Real": float("nan")})
    found = table.get_entity("p", "r")["Real"]
    assert found != found


def test_an_absent_value_is_not_stored(table):
    table.create_entity({"PartitionKey": "p", "RowKey": "r", "Nothing": None})
    assert "Nothing" not in table.get_entity("p", "r")


@pytest.mark.parametrize("key", ["", " ", "it's", "a b+c%d&e=f", "Grüße", "😀", "(x,y)", "@:;,$!*~"])
def test_any_permitted_key_works(table, key):
    table.create_entity({"PartitionKey": key, "RowKey": key, "Number": 1})
    assert table.get_entity(key, key)["Number"] == 1
    query = "PartitionKey eq @key and RowKey eq @key"
    assert keys(table.query_entities(query, parameters={"key": key})) == [(key, key)]
    table.delete_entity(key, key)
    with pytest.raises(ResourceNotFoundError):
        table.get_entity(key, key)


@pytest.mark.parametrize("key", ["a/b", "a\\b", "a#b", "a?b", "a\tb"])
def test_a_key_with_forbidden_characters_is_refused(table, key):
    with pytest.raises(HttpResponseError) as raised:
        table.create_entity({"PartitionKey": "p", "RowKey": key})
    assert raised.value.status_code == 400


def test_timestamp_and_etag_are_the_servers(table):
    before = datetime.datetime.now(datetime.timezone.utc)
    created = table.create_entity({"PartitionKey": "p", "RowKey": "r"})
    metadata = table.get_entity("p", "r").metadata
    assert metadata["etag"] == created["etag"]
    assert abs(metadata["timestamp"] - before) < datetime.timedelta(minutes=1)


def test_an_entity_is_inserted_once(table):
    entity = {"PartitionKey": "p", "RowKey": "r"}
    table.create_entity(entity)
    with pytest.raises(ResourceExistsError) as raised:
        table.create_entity(entity)
    assert code(raised) == "EntityAlreadyExists"


def test_a_missing_entity_is_not_found(table):
    with pytest.raises(ResourceNotFoundError) as raised:
        table.get_entity("p", "r")
    assert code(raised) == "ResourceNotFound"


def test_a_missing_table_is_not_found(tables):
    missing = tables.get_table_client("nosuchtable")
    for call in [
        lambda: missing.create_entity({"PartitionKey": "p", "RowKey": "r"}),
        lambda: missing.get_entity("p", "r"),
        lambda: list(missing.list_entities()),
        lambda: missing.update_entity({"PartitionKey": "p", "RowKey": "r"}),
    ]:
        with pytest.raises(ResourceNotFoundError) as raised:
            call()
        assert code(raised) == "TableNotFound"


def test_only_selected_properties_come_back(table):
    table.create_entity({"PartitionKey": "p", "RowKey": "r", "A": 1, "B": 2})
    assert dict(table.get_entity("p", "r", select=["A"])) == {"A": 1}
    (found,) = table.query_entities("PartitionKey eq 'p'", select=["RowKey", "B"])
    assert dict(found) == {"RowKey": "r", "B": 2}


def test_update_replaces_and_merge_keeps(table):
    table.create_entity({"PartitionKey": "p", "RowKey": "r", "A": 1, "B": 2})
    table.update_entity({"PartitionKey": "p", "RowKey": "r", "B": 3}, mode=UpdateMode.MERGE)
    assert dict(table.get_entity("p", "r")) == {"PartitionKey": "p", "RowKey": "r", "A": 1, "B": 3}
    table.update_entity({"PartitionKey": "p", "RowKey": "r", "C": 4}, mode=UpdateMode.REPLACE)
    assert dict(table.get_entity("p", "r")) == {"PartitionKey": "p", "RowKey": "r", "C": 4}


def test_upsert_inserts_and_changes(table):
    for mode in [UpdateMode.MERGE, UpdateMode.REPLACE]:
        row = str(mode)
        table.upsert_entity({"PartitionKey": "p", "RowKey": row, "A": 1}, mode=mode)
        table.upsert_entity({"PartitionKey": "p", "RowKey": row, "B": 2}, mode=mode)
        found = table.get_entity("p", row)
        assert ("A" in found, found["B"]) == (mode == UpdateMode.MERGE, 2)


def test_a_stale_etag_changes_nothing(table):
    stale = table.create_entity({"PartitionKey": "p", "RowKey": "r", "A": 1})["etag"]
    fresh = table.update_entity({"PartitionKey": "p", "RowKey": "r", "A": 2})["etag"]
    condition = {"match_condition": MatchConditions.IfNotModified}
    for mode in [UpdateMode.MERGE, UpdateMode.REPLACE]:
        with pytest.raises(ResourceModifiedError) as raised:
            changed = {"PartitionKey": "p", "RowKey": "r", "A": 3}
            table.update_entity(changed, mode=mode, etag=stale, **condition)
        assert code(raised) == "UpdateConditionNotSatisfied"
    with pytest.raises(ResourceModifiedError):
        table.delete_entity("p", "r", etag=stale, **condition)
    assert table.get_entity("p", "r")["A"] == 2
    table.delete_entity("p", "r", etag=fresh, **condition)


def test_updating_a_missing_entity_is_refused(table):
    for mode in [UpdateMode.MERGE, UpdateMode.REPLACE]:
        with pytest.raises(ResourceNotFoundError) as raised:
            table.update_entity({"PartitionKey": "p", "RowKey": "r"}, mode=mode)
        assert code(raised) == "ResourceNotFound"


@pytest.mark.parametrize(
    "expected, properties",
    [
        pytest.param("TooManyProperties", {f"P{n}": n for n in range(253)}, id="253 properties"),
        pytest.param("PropertyValueTooLarge", {"Text": "x" * (32 * 1024 + 1)}, id="long text"),
        pytest.param("PropertyValueTooLarge", {"Raw": b"x" * (64 * 1024 + 1)}, id="long binary"),
        pytest.param("EntityTooLarge", {f"P{n}": "x" * 32 * 1024 for n in range(17)}, id="1 MiB"),
        pytest.param("PropertyNameTooLong", {"N" * 256: 1}, id="long name"),
    ],
)
def test_limits_are_refused_by_name(table, expected, properties):
    """Azure keeps all these limits; Azurite only those of a single value."""
    with pytest.raises(HttpResponseError) as raised:
        table.create_entity({"PartitionKey": "p", "RowKey": "r", **properties})
    assert (raised.value.status_code, code(raised)) == (400, expected)
