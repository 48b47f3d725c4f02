"""Tables: create, list, query, delete."""

import uuid

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError

from answers import code


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
