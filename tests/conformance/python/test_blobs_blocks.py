"""Blocks: staged, listed, committed in any order, left out, refused."""

from azure.storage.blob import BlobBlock

from refusals import code, status


def ids(blocks):
    return [block.id for block in blocks]


def test_blocks_become_a_blob_in_the_order_of_the_list(container):
    blob = container.get_blob_client("b")
    for name in ["1", "2", "3"]:
        blob.stage_block(name, name.encode() * 3)
    assert not blob.exists()
    committed, uncommitted = blob.get_block_list("all")
    assert committed == [] and sorted(ids(uncommitted)) == ["1", "2", "3"]
    blob.commit_block_list([BlobBlock("3"), BlobBlock("1")], metadata={"a": "b"})
    assert blob.download_blob().readall() == b"333111"
    committed, uncommitted = blob.get_block_list("all")
    assert ids(committed) == ["3", "1"] and uncommitted == []
    assert [block.size for block in committed] == [3, 3]
    assert blob.get_blob_properties().metadata == {"a": "b"}


def test_committed_blocks_can_be_used_again(container):
    blob = container.get_blob_client("b")
    blob.stage_block("1", b"one")
    blob.stage_block("2", b"two")
    blob.commit_block_list([BlobBlock("1"), BlobBlock("2")])
    blob.stage_block("3", b"three")
    blob.commit_block_list([BlobBlock("3"), BlobBlock("1"), BlobBlock("2")])
    assert blob.download_blob().readall() == b"threeonetwo"


def test_a_block_is_staged_again(container):
    blob = container.get_blob_client("b")
    blob.stage_block("1", b"first")
    blob.stage_block("1", b"second")
    blob.commit_block_list([BlobBlock("1")])
    assert blob.download_blob().readall() == b"second"


def test_a_block_that_is_not_there_is_refused(container):
    blob = container.get_blob_client("b")
    blob.stage_block("1", b"one")
    assert code(lambda: blob.commit_block_list([BlobBlock("2")])) == "InvalidBlockList"
    both = [BlobBlock("1"), BlobBlock("2")]
    assert code(lambda: blob.commit_block_list(both)) == "InvalidBlockList"
    assert not blob.exists()


def test_all_ids_have_one_length(container):
    blob = container.get_blob_client("b")
    blob.stage_block("1", b"one")
    assert code(lambda: blob.stage_block("4444", b"two")) == "InvalidBlobOrBlock"


def test_an_empty_list_makes_an_empty_blob(container):
    blob = container.upload_blob("b", b"full")
    blob.commit_block_list([])
    assert blob.download_blob().readall() == b""


def test_a_blob_of_blocks_is_not_listed_before_it_is_committed(container):
    blob = container.get_blob_client("b")
    blob.stage_block("1", b"one")
    assert list(container.list_blobs()) == []
    (item,) = container.list_blobs(include=["uncommittedblobs"])
    assert item.name == "b" and item.size == 0


def test_a_whole_put_throws_staged_blocks_away(container):
    blob = container.get_blob_client("b")
    blob.stage_block("1", b"one")
    blob.upload_blob(b"whole")
    committed, uncommitted = blob.get_block_list("all")
    assert committed == [] and uncommitted == []


def test_a_block_with_a_wrong_checksum_is_refused(container):
    blob = container.get_blob_client("b")
    blob.stage_block("1", b"one", validate_content=True)
    wrong = {"Content-MD5": "1B2M2Y8AsgTpgAmY7PhCfg=="}
    assert code(lambda: blob.stage_block("2", b"two", headers=wrong)) == "Md5Mismatch"


def test_conditions_guard_a_commit(container):
    from azure.core import MatchConditions

    blob = container.upload_blob("b", b"old")
    blob.stage_block("1", b"new")
    refused = lambda: blob.commit_block_list(
        [BlobBlock("1")], etag='"0x8D000000000000"', match_condition=MatchConditions.IfNotModified
    )
    assert code(refused) == "ConditionNotMet"
    refused = lambda: blob.commit_block_list(
        [BlobBlock("1")], match_condition=MatchConditions.IfMissing
    )
    assert status(refused) in (409, 412)
    assert blob.download_blob().readall() == b"old"


def test_a_block_is_staged_from_a_url(container, read_url):
    source = container.upload_blob("source", b"0123456789")
    blob = container.get_blob_client("b")
    blob.stage_block_from_url("1", read_url(source), source_offset=2, source_length=3)
    blob.stage_block_from_url("2", read_url(source))
    blob.commit_block_list([BlobBlock("1"), BlobBlock("2")])
    assert blob.download_blob().readall() == b"2340123456789"
