"""The Tables front through azure-data-tables: tables, entities, queries, conditions, refusals."""

import datetime
import json
import uuid

import pytest
from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.data.tables import EdmType, EntityProperty, TableServiceClient, UpdateMode


def keys(entities):
    return [(entity["PartitionKey"], entity["RowKey"]) for entity in entities]


def code(raised):
    """The service's code, from the answer itself: the SDK does not hand it on for every operation."""
    return json.loads(raised.value.response.text())["odata.error"]["code"]


# Tables


def test_a_created_table_is_listed(tables):
    name = f"List{uuid.uuid4().hex}"
    tables.create_table(name)
    assert name in [table.name for table in tables.list_tables()]


def test_a_table_is_created_once(tables):
    name = f"t{uuid.uuid4().hex}"
    tables.create_table(name)
    with pytest.raises(ResourceExistsError) as raised:
        tables.create_table(name)
    assert code(raised) == "TableAlreadyExists"
    assert tables.create_table_if_not_exists(name).table_name == name


def test_a_deleted_table_is_gone_with_its_entities(tables):
    name = f"t{uuid.uuid4().hex}"
    table = tables.create_table(name)
    table.create_entity({"PartitionKey": "p", "RowKey": "r"})
    tables.delete_table(name)
    assert name not in [table.name for table in tables.list_tables()]
    with pytest.raises(ResourceNotFoundError) as raised:
        table.get_entity("p", "r")
    assert code(raised) == "TableNotFound"


def test_tables_are_listed_page_by_page(tables):
    prefix = f"t{uuid.uuid4().hex[:8]}"
    names = [f"{prefix}{number}" for number in range(5)]
    for name in names:
        tables.create_table(name)
    query = f"TableName ge '{prefix}' and TableName lt '{prefix}z'"
    pages = list(tables.query_tables(query, results_per_page=2).by_page())
    assert [[table.name for table in page] for page in pages] == [names[:2], names[2:4], names[4:]]


def test_tables_are_queried_by_name(tables, table):
    found = tables.query_tables("TableName eq @name", parameters={"name": table.table_name})
    assert [item.name for item in found] == [table.table_name]


@pytest.mark.parametrize("name", ["1abc", "a-b", "ab", "a" * 64])
def test_a_bad_table_name_is_refused(tables, name):
    with pytest.raises((HttpResponseError, ValueError)):
        tables.create_table(name)


# Entities


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
    with pytest.raises(HttpResponseError) as raised:
        table.create_entity({"PartitionKey": "p", "RowKey": "r", **properties})
    assert (raised.value.status_code, code(raised)) == (400, expected)


# Queries


@pytest.fixture
def numbers(table):
    """Three partitions of four rows each, with the row's number in every type."""
    for partition in "abc":
        for row in range(4):
            table.create_entity(
                {
                    "PartitionKey": partition,
                    "RowKey": str(row),
                    "Number": row,
                    "Long": EntityProperty(row, EdmType.INT64),
                    "Real": row + 0.5,
                    "Even": row % 2 == 0,
                    "Text": f"it's {row}",
                    "Raw": bytes([row]),
                    "Id": uuid.UUID(int=row),
                    "At": datetime.datetime(2024, 1, 1 + row, tzinfo=datetime.timezone.utc),
                }
            )
    return table


@pytest.mark.parametrize(
    "query, expected",
    [
        ("PartitionKey eq 'a'", "a0 a1 a2 a3"),
        ("PartitionKey eq 'a' and RowKey eq '2'", "a2"),
        ("PartitionKey eq 'a' and RowKey gt '0' and RowKey le '2'", "a1 a2"),
        ("PartitionKey gt 'a' and Number eq 0", "b0 c0"),
        ("PartitionKey ge 'b' and PartitionKey lt 'c' and Number ge 2", "b2 b3"),
        ("RowKey eq '3'", "a3 b3 c3"),
        ("Number eq 1 and PartitionKey ne 'b'", "a1 c1"),
        ("Long gt 2L", "a3 b3 c3"),
        ("Number eq 1L and PartitionKey eq 'a'", "a1"),
        ("Real lt 1.0", "a0 b0 c0"),
        ("Even eq true and PartitionKey eq 'a'", "a0 a2"),
        ("PartitionKey eq 'a' and not (Even eq true)", "a1 a3"),
        ("Text eq 'it''s 2' and PartitionKey eq 'a'", "a2"),
        ("At ge datetime'2024-01-04T00:00:00Z' and PartitionKey eq 'a'", "a3"),
        ("Id eq guid'00000000-0000-0000-0000-000000000002' and PartitionKey eq 'a'", "a2"),
        ("Raw eq X'03' and PartitionKey eq 'a'", "a3"),
        ("(PartitionKey eq 'a' or PartitionKey eq 'c') and (Number eq 0 or Number eq 3)", "a0 a3 c0 c3"),
        ("PartitionKey eq 'a' and Number eq 0 or PartitionKey eq 'b' and Number eq 1", "a0 b1"),
        ("PartitionKey eq 'x'", ""),
        ("Nothing eq 1", ""),
    ],
)
def test_a_filter_finds_what_it_says(numbers, query, expected):
    assert [p + r for p, r in keys(numbers.query_entities(query))] == expected.split()


def test_parameters_of_every_type_are_understood(numbers):
    parameters = {
        "text": "it's 2",
        "real": 2.5,
        "yes": True,
        "at": datetime.datetime(2024, 1, 3, tzinfo=datetime.timezone.utc),
        "id": uuid.UUID(int=2),
        "raw": bytes([2]),
        "number": 2,
    }
    query = (
        "Text eq @text and Real eq @real and Even eq @yes and At eq @at"
        " and Id eq @id and Raw eq @raw and Number eq @number"
    )
    assert keys(numbers.query_entities(query, parameters=parameters)) == [
        ("a", "2"),
        ("b", "2"),
        ("c", "2"),
    ]


def test_entities_come_sorted_by_both_keys(numbers):
    everything = keys(numbers.list_entities())
    assert everything == sorted(everything) and len(everything) == 12


def test_pages_follow_each_other_without_loss(numbers):
    pages = [keys(page) for page in numbers.list_entities(results_per_page=5).by_page()]
    assert [len(page) for page in pages] == [5, 5, 2]
    assert sum(pages, []) == keys(numbers.list_entities())


def test_a_continuation_token_starts_the_next_page(numbers):
    first = numbers.query_entities("Number ge 1", results_per_page=4).by_page()
    begin = keys(next(first))
    query = numbers.query_entities("Number ge 1", results_per_page=4)
    rest = [keys(page) for page in query.by_page(continuation_token=first.continuation_token)]
    assert begin + sum(rest, []) == keys(numbers.query_entities("Number ge 1"))


def test_a_page_holds_a_thousand(table):
    for row in range(1001):
        table.create_entity({"PartitionKey": "p", "RowKey": f"{row:04}"})
    pages = [keys(page) for page in table.list_entities().by_page()]
    assert [len(page) for page in pages] == [1000, 1]


@pytest.mark.parametrize("query", ["Number eq", "Number == 1", "(Number eq 1", "Number eq 'x"])
def test_a_bad_filter_is_refused(table, query):
    with pytest.raises(HttpResponseError) as raised:
        list(table.query_entities(query))
    assert (raised.value.status_code, code(raised)) == (400, "InvalidInput")


# Access


def test_a_wrong_key_is_refused(target, tables_url):
    credential = AzureNamedKeyCredential(target["account"], "d3Jvbmc=")
    with TableServiceClient(tables_url, credential=credential, retry_total=0) as client:
        with pytest.raises(ClientAuthenticationError) as raised:
            list(client.list_tables())
    assert raised.value.status_code == 403
