"""Tags: set, read, searched for, and as conditions."""

import uuid

import pytest

from refusals import code, status


def test_tags_are_kept_and_replaced(container):
    blob = container.upload_blob("b", b"x", tags={"one": "1", "two": "2"})
    assert blob.get_blob_tags() == {"one": "1", "two": "2"}
    assert blob.get_blob_properties().tag_count == 2
    etag = blob.get_blob_properties().etag
    blob.set_blob_tags({"three": "3"})
    assert blob.get_blob_tags() == {"three": "3"}
    assert blob.get_blob_properties().etag == etag
    blob.set_blob_tags()
    assert blob.get_blob_tags() == {}


@pytest.mark.parametrize(
    "tags",
    [{f"k{n}": "v" for n in range(11)}, {"k" * 129: "v"}, {"k": "v" * 257}, {"k": "a<b"}],
    ids=["eleven", "long key", "long value", "bad letter"],
)
def test_tags_have_limits(container, tags):
    blob = container.upload_blob("b", b"x")
    assert status(lambda: blob.set_blob_tags(tags)) == 400


def test_blobs_are_found_by_their_tags(blobs, container):
    mark = uuid.uuid4().hex
    for name, project in [("a", "x"), ("b", "y"), ("c", "x")]:
        container.upload_blob(name, b"", tags={"mark": mark, "project": project})
    query = f"\"mark\" = '{mark}' AND \"project\" = 'x'"
    found = list(blobs.find_blobs_by_tags(query))
    assert [(item.name, item.container_name) for item in found] == [
        ("a", container.container_name),
        ("c", container.container_name),
    ]
    assert found[0].tags == {"mark": mark, "project": "x"}
    inside = container.find_blobs_by_tags(f"\"mark\" = '{mark}' AND \"project\" > 'x'")
    assert [item.name for item in inside] == ["b"]
    named = f"@container = '{container.container_name}' AND \"mark\" = '{mark}'"
    assert [item.name for item in blobs.find_blobs_by_tags(named)] == ["a", "b", "c"]


def test_a_search_gives_back_the_tags_that_it_names(blobs, container):
    mark = uuid.uuid4().hex
    container.upload_blob("b", b"", tags={"mark": mark, "one": "1", "two": "2"})
    (found,) = blobs.find_blobs_by_tags(f"\"mark\" = '{mark}' AND \"two\" > '1'")
    assert found.tags == {"mark": mark, "two": "2"}


def test_a_search_names_ten_tags_at_the_most(blobs):
    query = lambda count: " AND ".join(f"\"k{n}\" = 'v'" for n in range(count))
    assert list(blobs.find_blobs_by_tags(query(10))) == []
    assert status(lambda: list(blobs.find_blobs_by_tags(query(11)))) == 400


def test_a_condition_knows_no_container(container):
    blob = container.upload_blob("b", b"x", tags={"a": "b"})
    query = f"@container = '{container.container_name}' AND \"a\" = 'b'"
    refused = lambda: blob.download_blob(if_tags_match_condition=query)
    assert code(refused) == "InvalidHeaderValue"


def test_pages_of_a_search_lose_nothing(blobs, container):
    mark = uuid.uuid4().hex
    for n in range(10):
        container.upload_blob(f"b{n}", b"", tags={"mark": mark if n % 2 else "other"})
    pages = blobs.find_blobs_by_tags(f"\"mark\" = '{mark}'", results_per_page=2).by_page()
    assert [item.name for page in pages for item in page] == ["b1", "b3", "b5", "b7", "b9"]


@pytest.mark.parametrize("query", ["a", "\"a\" = b", "\"a\" ~ 'b'"])
def test_a_bad_search_is_refused(blobs, query):
    assert status(lambda: list(blobs.find_blobs_by_tags(query))) == 400


def test_tags_are_conditions(container):
    blob = container.upload_blob("b", b"x", tags={"state": "done", "n": "5"})
    assert blob.download_blob(if_tags_match_condition="\"state\" = 'done'").readall() == b"x"
    held = "\"n\" > '4' AND \"state\" <> 'open'"
    blob.set_blob_metadata({"a": "b"}, if_tags_match_condition=held)
    for query in ["\"state\" = 'open'", "\"missing\" = 'x'"]:
        refused = lambda: blob.set_blob_metadata({"c": "d"}, if_tags_match_condition=query)
        assert code(refused) == "ConditionNotMet"
    either = "\"state\" = 'open' OR \"n\" = '5'"
    blob.delete_blob(if_tags_match_condition=either)
