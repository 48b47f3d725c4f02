"""Entity group transactions: every kind of change, all or nothing, and which change is to blame."""

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.data.tables import RequestTooLargeError, TableTransactionError, UpdateMode

from answers import keys


def entity(row, partition="p", **properties):
    return {"PartitionKey": partition, "RowKey": row, **properties}


def refused(table, operations):
    """The place of the change that is to blame, and the service's code."""
    with pytest.raises(TableTransactionError) as raised:
        table.submit_transaction(operations)
    return raised.value.index, raised.value.error_code


def test_a_transaction_makes_every_kind_of_change(table):
    for row in ["merged", "replaced", "deleted"]:
        table.create_entity(entity(row, A=1))
    answers = table.submit_transaction(
        [
            ("create", entity("created", A=1)),
            ("update", entity("merged", B=2), {"mode": UpdateMode.MERGE}),
            ("update", entity("replaced", B=2), {"mode": UpdateMode.REPLACE}),
            ("upsert", entity("upserted", B=2), {"mode": UpdateMode.MERGE}),
            ("upsert", entity("put", B=2), {"mode": UpdateMode.REPLACE}),
            ("delete", entity("deleted")),
        ]
    )
    assert len(answers) == 6 and all(answer["etag"] for answer in answers[:5])
    found = {item["RowKey"]: set(item) & {"A", "B"} for item in table.list_entities()}
    assert found == {
        "created": {"A"},
        "merged": {"A", "B"},
        "replaced": {"B"},
        "upserted": {"B"},
        "put": {"B"},
    }


def test_a_transaction_of_a_hundred_changes_is_made(table):
    table.submit_transaction([("create", entity(f"{row:03}")) for row in range(100)])
    assert len(keys(table.list_entities())) == 100


def test_a_refused_change_is_named_and_nothing_is_changed(table):
    table.create_entity(entity("there"))
    operations = [("create", entity("new")), ("create", entity("there")), ("create", entity("more"))]
    assert refused(table, operations) == (1, "EntityAlreadyExists")
    assert keys(table.list_entities()) == [("p", "there")]


def test_a_stale_etag_refuses_the_transaction(table):
    stale = table.create_entity(entity("there", A=1))["etag"]
    table.update_entity(entity("there", A=2))
    condition = {"etag": stale, "match_condition": MatchConditions.IfNotModified}
    operations = [("create", entity("new")), ("update", entity("there", A=3), condition)]
    assert refused(table, operations) == (1, "UpdateConditionNotSatisfied")
    assert table.get_entity("p", "there")["A"] == 2


def test_a_missing_entity_refuses_the_transaction(table):
    operations = [("create", entity("new")), ("update", entity("missing"))]
    assert refused(table, operations) == (1, "ResourceNotFound")
    with pytest.raises(ResourceNotFoundError):
        table.get_entity("p", "new")


def test_an_entity_may_appear_once_in_a_transaction(table):
    operations = [("create", entity("r")), ("upsert", entity("r", A=1))]
    assert refused(table, operations)[1] == "InvalidDuplicateRow"


def test_more_than_a_hundred_changes_are_refused(table):
    """Azure's refusal can be read by every SDK; Azurite's has parts that Python's cannot take apart."""
    operations = [("create", entity(f"{row:03}")) for row in range(101)]
    with pytest.raises(HttpResponseError) as raised:
        table.submit_transaction(operations)
    assert raised.value.error_code == "InvalidInput"
    assert keys(table.list_entities()) == []


def test_a_transaction_over_four_mebibytes_is_refused(table):
    wide = {f"P{number}": "x" * 30_000 for number in range(15)}
    operations = [("create", entity(str(row), **wide)) for row in range(10)]
    with pytest.raises(RequestTooLargeError):
        table.submit_transaction(operations)
