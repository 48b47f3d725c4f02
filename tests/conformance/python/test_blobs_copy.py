"""Copies: at once or in the background, within the account, from another server, by signature, aborted too late."""

from base64 import b64encode
from hashlib import md5

from azure.core import MatchConditions

from refusals import code, refusal, status


def test_a_copy_is_a_blob_of_its_own(container):
    source = container.upload_blob("source", b"hello", metadata={"a": "b"})
    blob = container.get_blob_client("copy")
    copy = blob.start_copy_from_url(source.url)
    assert copy["copy_status"] == "success" and copy["copy_id"]
    source.delete_blob()
    read = blob.download_blob()
    assert read.readall() == b"hello" and read.properties.metadata == {"a": "b"}
    copied = blob.get_blob_properties().copy
    assert copied.status == "success" and copied.id == copy["copy_id"]
    assert copied.progress == "5/5" and copied.source.endswith("/source")


def test_a_copy_may_have_metadata_of_its_own(container):
    source = container.upload_blob("source", b"hello", metadata={"a": "b"})
    blob = container.get_blob_client("copy")
    blob.start_copy_from_url(source.url, metadata={"c": "d"})
    assert blob.get_blob_properties().metadata == {"c": "d"}


def test_a_copy_at_once_needs_no_waiting(container, read_url):
    source = container.upload_blob("source", b"hello")
    blob = container.get_blob_client("copy")
    copy = blob.start_copy_from_url(read_url(source), requires_sync=True)
    assert copy["copy_status"] == "success"
    assert blob.download_blob().readall() == b"hello"


def test_a_copy_has_the_tags_of_its_source_or_its_own(container, read_url):
    source = container.upload_blob("b", b"x", tags={"a": "1"})
    copy = container.get_blob_client("c")
    start = lambda tags: copy.start_copy_from_url(read_url(source), requires_sync=True, tags=tags)
    start("COPY")
    assert copy.get_blob_tags() == {"a": "1"}
    start({"b": "2"})
    assert copy.get_blob_tags() == {"b": "2"}


def test_a_copy_at_once_checks_its_source(container, read_url):
    source = container.upload_blob("b", b"hello")
    copy = container.get_blob_client("c")
    right, wrong = (b64encode(md5(text).digest()).decode() for text in [b"hello", b"other"])
    # The SDK has no word for it.
    start = lambda md5: copy.start_copy_from_url(
        read_url(source), requires_sync=True, headers={"x-ms-source-content-md5": md5}
    )
    assert code(lambda: start(wrong)) == "Md5Mismatch"
    assert not copy.exists()
    assert start(right)["copy_status"] == "success"
    assert copy.download_blob().readall() == b"hello"


def test_a_blob_is_put_from_a_url(container, read_url):
    """Azurite does not know Put Blob From URL."""
    source = container.upload_blob("source", b"hello")
    blob = container.get_blob_client("put")
    blob.upload_blob_from_url(read_url(source))
    assert blob.download_blob().readall() == b"hello"
    assert code(lambda: blob.upload_blob_from_url(read_url(source), overwrite=False)) == (
        "BlobAlreadyExists"
    )


def test_a_source_that_is_not_there_is_not_found(container):
    blob = container.get_blob_client("copy")
    missing = container.get_blob_client("missing")
    assert status(lambda: blob.start_copy_from_url(missing.url)) == 404
    assert not blob.exists()


def test_conditions_guard_source_and_target_of_a_copy(container):
    source = container.upload_blob("source", b"hello")
    target = container.upload_blob("target", b"old")
    refused = lambda: target.start_copy_from_url(
        source.url,
        source_etag='"0x8D000000000000"',
        source_match_condition=MatchConditions.IfNotModified,
    )
    assert code(refused) == "SourceConditionNotMet"
    refused = lambda: target.start_copy_from_url(
        source.url, etag='"0x8D000000000000"', match_condition=MatchConditions.IfNotModified
    )
    assert code(refused) == "TargetConditionNotMet"
    assert target.download_blob().readall() == b"old"


def test_a_lease_guards_the_target_of_a_copy(container):
    source = container.upload_blob("source", b"hello")
    target = container.upload_blob("target", b"old")
    lease = target.acquire_lease(lease_duration=15)
    assert code(lambda: target.start_copy_from_url(source.url)) == "LeaseIdMissing"
    target.start_copy_from_url(source.url, destination_lease=lease)
    assert target.download_blob().readall() == b"hello"


def test_a_copy_that_is_done_is_not_aborted(container):
    source = container.upload_blob("source", b"hello")
    blob = container.get_blob_client("copy")
    copy = blob.start_copy_from_url(source.url)
    assert code(lambda: blob.abort_copy(copy["copy_id"])) == "NoPendingCopyOperation"


def test_copies_keep_the_kind_of_blob(container):
    append = container.get_blob_client("append")
    append.upload_blob(b"one", blob_type="AppendBlob")
    page = container.get_blob_client("page")
    page.upload_blob(b"p" * 512, blob_type="PageBlob")
    for source, kind in [(append, "AppendBlob"), (page, "PageBlob")]:
        blob = container.get_blob_client(f"copy of {kind}")
        blob.start_copy_from_url(source.url)
        assert blob.get_blob_properties().blob_type == kind
        assert blob.download_blob().readall() == source.download_blob().readall()


def test_a_copy_comes_from_another_server(container, other_container, read_url):
    """Azurite copies within itself only, as the tests below show too."""
    source = other_container.upload_blob("source", b"hello", metadata={"a": "b"})
    for sync in [False, True]:
        blob = container.get_blob_client(f"copy {sync}")
        copy = blob.start_copy_from_url(read_url(source), requires_sync=sync)
        assert copy["copy_status"] == "success"
        read = blob.download_blob()
        assert read.readall() == b"hello" and read.properties.metadata == {"a": "b"}
        assert blob.get_blob_properties().copy.progress == "5/5"


def test_a_blob_is_put_from_another_server(container, other_container, read_url):
    source = other_container.upload_blob("source", b"hello" * 100_000)
    blob = container.get_blob_client("put")
    blob.upload_blob_from_url(read_url(source))
    assert blob.download_blob().readall() == b"hello" * 100_000


def test_parts_of_a_blob_come_from_another_server(container, other_container, read_url):
    source = read_url(other_container.upload_blob("source", bytes(range(256)) * 4))
    content = bytes(range(256)) * 4
    blocks = container.get_blob_client("blocks")
    blocks.stage_block_from_url("1", source, source_offset=512, source_length=512)
    blocks.stage_block_from_url("2", source, source_offset=10, source_length=5)
    blocks.commit_block_list(["1", "2"])
    assert blocks.download_blob().readall() == content[512:] + content[10:15]
    append = container.get_blob_client("append")
    append.create_append_blob()
    append.append_block_from_url(source)
    append.append_block_from_url(source, source_offset=1, source_length=3)
    assert append.download_blob().readall() == content + content[1:4]
    pages = container.get_blob_client("pages")
    pages.create_page_blob(1024)
    pages.upload_pages_from_url(source, offset=512, length=512, source_offset=0)
    assert pages.download_blob().readall() == bytes(512) + content[:512]


def test_conditions_hold_on_another_server(container, other_container, read_url):
    source = other_container.upload_blob("source", b"hello")
    blob = container.get_blob_client("copy")
    match = {"source_match_condition": MatchConditions.IfNotModified}
    refused = lambda: blob.start_copy_from_url(
        read_url(source), source_etag='"0x8D000000000000"', **match
    )
    assert code(refused) == "SourceConditionNotMet"
    assert not blob.exists()
    etag = source.get_blob_properties().etag
    blob.start_copy_from_url(read_url(source), source_etag=etag, **match)
    assert blob.download_blob().readall() == b"hello"


def test_another_server_must_let_the_copy_in(container, other_container):
    source = other_container.upload_blob("source", b"hello")
    blob = container.get_blob_client("copy")
    assert code(lambda: blob.start_copy_from_url(source.url)) == "CannotVerifyCopySource"
    assert not blob.exists()


def test_a_copy_asks_no_server_that_is_not_allowed(container):
    """The address is one that is set aside for documentation."""
    blob = container.get_blob_client("copy")
    elsewhere = "http://192.0.2.1/container/blob"
    for call in [
        lambda: blob.start_copy_from_url(elsewhere),
        lambda: blob.start_copy_from_url(elsewhere, requires_sync=True),
        lambda: blob.upload_blob_from_url(elsewhere),
        lambda: blob.stage_block_from_url("1", elsewhere),
    ]:
        error = refusal(call)
        assert error.response.headers["x-ms-error-code"] == "CannotVerifyCopySource"
        assert error.status_code == 403
    assert not blob.exists()
