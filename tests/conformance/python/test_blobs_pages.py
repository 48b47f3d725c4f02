"""Page blobs: written and cleared by pages, resized, numbered, compared with snapshots."""

import pytest

from refusals import code, status

PAGE = 512


def pages(letter, count=1):
    return letter.encode() * (PAGE * count)


def ranges(found):
    return [(part["start"] // PAGE, (part["end"] + 1) // PAGE) for part in found]


@pytest.fixture
def blob(container):
    blob = container.get_blob_client("p")
    blob.create_page_blob(8 * PAGE)
    return blob


def test_pages_are_written_and_read(blob):
    blob.upload_page(pages("a", 2), offset=0, length=2 * PAGE)
    blob.upload_page(pages("b"), offset=4 * PAGE, length=PAGE)
    expected = pages("a", 2) + pages("\0", 2) + pages("b") + pages("\0", 3)
    assert blob.download_blob().readall() == expected
    found, cleared = blob.get_page_ranges()
    assert ranges(found) == [(0, 2), (4, 5)] and cleared == []
    properties = blob.get_blob_properties()
    assert properties.blob_type == "PageBlob" and properties.size == 8 * PAGE
    assert properties.page_blob_sequence_number == 0


def test_pages_are_cleared(blob):
    blob.upload_page(pages("a", 4), offset=0, length=4 * PAGE)
    blob.clear_page(offset=PAGE, length=PAGE)
    expected = pages("a") + pages("\0") + pages("a", 2) + pages("\0", 4)
    assert blob.download_blob().readall() == expected
    assert ranges(blob.get_page_ranges()[0]) == [(0, 1), (2, 4)]


def test_ranges_of_pages_can_be_asked_for_in_part(blob):
    blob.upload_page(pages("a", 8), offset=0, length=8 * PAGE)
    assert ranges(blob.get_page_ranges(offset=2 * PAGE, length=2 * PAGE)[0]) == [(2, 4)]


def test_a_write_behind_the_end_is_refused(blob):
    refused = lambda: blob.upload_page(pages("a"), offset=8 * PAGE, length=PAGE)
    assert code(refused) == "InvalidPageRange"


def test_a_page_blob_has_whole_pages(container):
    refused = lambda: container.get_blob_client("odd").create_page_blob(PAGE + 1)
    assert status(refused) == 400


def test_a_page_blob_is_resized(blob):
    blob.upload_page(pages("a", 8), offset=0, length=8 * PAGE)
    blob.resize_blob(2 * PAGE)
    assert blob.download_blob().readall() == pages("a", 2)
    blob.resize_blob(4 * PAGE)
    assert blob.download_blob().readall() == pages("a", 2) + pages("\0", 2)


def test_sequence_numbers_guard_writes(blob):
    blob.set_sequence_number("update", "7")
    assert blob.get_blob_properties().page_blob_sequence_number == 7
    blob.set_sequence_number("increment")
    blob.set_sequence_number("max", "3")
    assert blob.get_blob_properties().page_blob_sequence_number == 8
    write = lambda **terms: blob.upload_page(pages("a"), offset=0, length=PAGE, **terms)
    write(if_sequence_number_eq=8)
    write(if_sequence_number_lte=8)
    write(if_sequence_number_lt=9)
    for terms in [
        {"if_sequence_number_eq": 7},
        {"if_sequence_number_lte": 7},
        {"if_sequence_number_lt": 8},
    ]:
        assert code(lambda: write(**terms)) == "SequenceNumberConditionNotMet"


def test_only_a_page_blob_has_pages(container):
    blob = container.upload_blob("b", pages("x"))
    refused = lambda: blob.upload_page(pages("a"), offset=0, length=PAGE)
    assert code(refused) == "InvalidBlobType"
    assert code(lambda: blob.get_page_ranges()) == "InvalidBlobType"


def test_pages_are_compared_with_a_snapshot(blob):
    """Azure answers what changed since the snapshot; Azurite answers all ranges."""
    blob.upload_page(pages("a", 4), offset=0, length=4 * PAGE)
    snapshot = blob.create_snapshot()
    blob.upload_page(pages("b"), offset=PAGE, length=PAGE)
    blob.clear_page(offset=3 * PAGE, length=PAGE)
    found, cleared = blob.get_page_ranges(previous_snapshot_diff=snapshot)
    assert ranges(found) == [(1, 2)] and ranges(cleared) == [(3, 4)]


def test_pages_come_from_a_url(container, blob, read_url):
    source = container.upload_blob("source", pages("s", 2))
    blob.upload_pages_from_url(read_url(source), offset=PAGE, length=PAGE, source_offset=0)
    assert blob.download_blob().readall() == pages("\0") + pages("s") + pages("\0", 6)
