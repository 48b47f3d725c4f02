"""Documents: items, conditions on their etags, feeds and partial updates."""

import pytest
from azure.core import MatchConditions
from azure.cosmos import PartitionKey

from documents import container, fresh, ids, make, refusal, status


def test_an_item_is_created_read_replaced_and_deleted(container):
    made = container.create_item({"id": "1", "pk": "a", "n": 1, "deep": {"list": [1, 2.5, None, True, "ä"]}})
    assert made["_etag"] and made["_rid"] and made["_ts"] > 0
    assert container.read_item("1", "a")["deep"] == {"list": [1, 2.5, None, True, "ä"]}
    made["n"] = 2
    replaced = container.replace_item("1", made)
    assert replaced["n"] == 2 and replaced["_etag"] != made["_etag"] and replaced["_rid"] == made["_rid"]
    container.delete_item("1", "a")
    assert status(lambda: container.read_item("1", "a")) == 404
    assert status(lambda: container.delete_item("1", "a")) == 404


def test_an_item_is_created_once(container):
    container.create_item({"id": "1", "pk": "a"})
    assert status(lambda: container.create_item({"id": "1", "pk": "a"})) == 409
    container.create_item({"id": "1", "pk": "b"})


def test_an_upsert_creates_or_replaces(container):
    assert container.upsert_item({"id": "1", "pk": "a", "n": 1})["n"] == 1
    assert container.upsert_item({"id": "1", "pk": "a", "n": 2})["n"] == 2
    assert container.read_item("1", "a")["n"] == 2


def test_a_missing_item_cannot_be_replaced(container):
    assert status(lambda: container.replace_item("1", {"id": "1", "pk": "a"})) == 404


@pytest.mark.parametrize("key", ["text", "", 5, -1.5, True, False, None])
def test_a_partition_key_may_be_any_plain_value(container, key):
    container.upsert_item({"id": "1", "pk": key, "mark": repr(key)})
    assert container.read_item("1", key)["mark"] == repr(key)


def test_an_item_without_its_key_has_an_undefined_one(container):
    from azure.cosmos.partition_key import NonePartitionKeyValue
    container.create_item({"id": "1"})
    assert container.read_item("1", NonePartitionKeyValue)["id"] == "1"


def test_etags_guard_changes(container):
    made = container.create_item({"id": "1", "pk": "a", "n": 0})
    changed = container.replace_item("1", {"id": "1", "pk": "a", "n": 1})
    condition = {"match_condition": MatchConditions.IfNotModified}
    old, new = {"etag": made["_etag"], **condition}, {"etag": changed["_etag"], **condition}
    assert status(lambda: container.replace_item("1", {"id": "1", "pk": "a"}, **old)) == 412
    assert status(lambda: container.delete_item("1", "a", **old)) == 412
    container.replace_item("1", {"id": "1", "pk": "a", "n": 2}, **new)


@pytest.mark.parametrize("body", [{"id": ""}, {"id": "1", "ttl": 0}, {"id": "1", "ttl": "x"}], ids=["no id", "no time", "no number"])
def test_bad_items_are_refused(container, body):
    assert status(lambda: container.create_item({"pk": "a", **body})) == 400


def test_an_item_over_two_megabytes_is_refused(container):
    assert status(lambda: container.create_item({"id": "1", "pk": "a", "text": "x" * (2 * 1024 * 1024)})) == 413


def test_all_items_are_listed_page_by_page(container):
    for n in range(7):
        container.create_item({"id": str(n), "pk": str(n % 3)})
    pages = [list(page) for page in container.read_all_items(max_item_count=2).by_page()]
    assert sorted(ids(sum(pages, []))) == [str(n) for n in range(7)]
    assert all(len(page) <= 2 for page in pages)


def test_unique_keys_hold_within_a_partition_key(database):
    container = make(database, unique_key_policy={"uniqueKeys": [{"paths": ["/email"]}]})
    container.create_item({"id": "1", "pk": "a", "email": "x"})
    assert status(lambda: container.create_item({"id": "2", "pk": "a", "email": "x"})) == 409
    container.create_item({"id": "2", "pk": "b", "email": "x"})


@pytest.mark.parametrize(
    "operation, expected",
    [
        ({"op": "add", "path": "/b", "value": 1}, {"n": 1, "list": [1, 2], "b": 1}),
        ({"op": "set", "path": "/list/0", "value": 9}, {"n": 1, "list": [9, 2]}),
        ({"op": "add", "path": "/list/-", "value": 3}, {"n": 1, "list": [1, 2, 3]}),
        ({"op": "replace", "path": "/n", "value": "x"}, {"n": "x", "list": [1, 2]}),
        ({"op": "remove", "path": "/n"}, {"list": [1, 2]}),
        ({"op": "incr", "path": "/n", "value": 2.5}, {"n": 3.5, "list": [1, 2]}),
        ({"op": "move", "from": "/n", "path": "/m"}, {"m": 1, "list": [1, 2]}),
    ],
    ids=["add", "set", "append", "replace", "remove", "incr", "move"],
)
def test_an_item_is_patched(container, operation, expected):
    container.create_item({"id": "1", "pk": "a", "n": 1, "list": [1, 2]})
    patched = container.patch_item("1", "a", [operation])
    assert {name: patched[name] for name in patched if not name.startswith("_")} == {"id": "1", "pk": "a", **expected}


def test_a_patch_has_a_condition(container):
    container.create_item({"id": "1", "pk": "a", "n": 1})
    operations = [{"op": "incr", "path": "/n", "value": 1}]
    assert container.patch_item("1", "a", operations, filter_predicate="from c where c.n = 1")["n"] == 2
    refused = refusal(lambda: container.patch_item("1", "a", operations, filter_predicate="from c where c.n = 1"))
    assert refused.status_code == 412


def test_id_and_partition_key_cannot_be_patched(container):
    container.create_item({"id": "1", "pk": "a"})
    for path in ["/id", "/pk", "/_ts"]:
        assert status(lambda: container.patch_item("1", "a", [{"op": "set", "path": path, "value": "x"}])) == 400
    assert status(lambda: container.patch_item("1", "a", [{"op": "remove", "path": "/none"}])) == 400


def test_hierarchical_keys_find_items_by_prefix(database):
    key = PartitionKey(["/country", "/city"], kind="MultiHash")
    container = database.create_container(fresh(), key)
    for country, city in [("de", "berlin"), ("de", "bonn"), ("fr", "paris")]:
        container.create_item({"id": city, "country": country, "city": city})
    assert container.read_item("bonn", ["de", "bonn"])["city"] == "bonn"
    found = container.query_items("SELECT * FROM c", partition_key=["de"])
    assert sorted(ids(found)) == ["berlin", "bonn"]


def test_all_items_of_a_partition_key_are_deleted(container):
    for n in range(5):
        container.create_item({"id": str(n), "pk": "a" if n < 4 else "b"})
    container.delete_all_items_by_partition_key("a")
    assert ids(container.read_all_items()) == ["4"]
