"""Lists of blobs: prefixes, folders, pages, what they include."""

import pytest

from refusals import code

NAMES = ["a", "b/1", "b/2", "b/c/1", "d", "e/1"]


@pytest.fixture
def filled(container):
    for name in NAMES:
        container.upload_blob(name, name.encode())
    return container


def names(items):
    return [item.name for item in items]


def test_blobs_are_listed_in_order(filled):
    assert names(filled.list_blobs()) == NAMES
    (first, *_) = filled.list_blobs()
    assert first.size == 1 and first.etag and first.last_modified and first.creation_time
    assert first.blob_type == "BlockBlob" and first.content_settings.content_md5
    assert first.blob_tier == "Hot" and first.lease.state == "available"


def test_a_prefix_narrows_the_list(filled):
    assert names(filled.list_blobs(name_starts_with="b/")) == ["b/1", "b/2", "b/c/1"]
    assert names(filled.list_blobs(name_starts_with="x")) == []


def test_folders_are_listed_once(filled):
    walked = lambda **terms: sorted(names(filled.walk_blobs(**terms)))
    assert walked() == ["a", "b/", "d", "e/"]
    assert walked(name_starts_with="b/") == ["b/1", "b/2", "b/c/"]
    assert walked(delimiter="c") == ["a", "b/1", "b/2", "b/c", "d", "e/1"]


@pytest.mark.parametrize("size", [1, 2, 4])
def test_pages_add_up_to_the_list(filled, size):
    pages = filled.list_blobs(results_per_page=size).by_page()
    found = [names(page) for page in pages]
    assert sum(found, []) == NAMES and all(len(page) <= size for page in found)


def test_pages_of_folders_add_up_to_the_list(filled):
    pages = filled.walk_blobs(results_per_page=1).by_page()
    assert sum([names(page) for page in pages], []) == ["a", "b/", "d", "e/"]


def test_a_list_includes_what_is_asked_for(container):
    container.upload_blob("b", b"x", metadata={"m": "1"}, tags={"t": "2"})
    (plain,) = container.list_blobs()
    assert plain.metadata == {} and plain.tags is None
    (full,) = container.list_blobs(include=["metadata", "tags"])
    assert full.metadata == {"m": "1"} and full.tags == {"t": "2"}
    assert full.tag_count == 1


def test_a_list_of_nothing_is_empty(container):
    assert names(container.list_blobs()) == []
    assert names(container.walk_blobs()) == []


def test_many_blobs_are_listed_page_by_page(container):
    expected = [f"{n:04}" for n in range(250)]
    for name in expected:
        container.upload_blob(name, b"")
    pages = [names(page) for page in container.list_blobs(results_per_page=100).by_page()]
    assert [len(page) for page in pages] == [100, 100, 50]
    assert sum(pages, []) == expected


def test_a_list_has_at_least_one_entry_in_a_page(filled):
    refused = lambda: list(filled.list_blobs(results_per_page=0))
    assert code(refused) == "OutOfRangeQueryParameterValue"
