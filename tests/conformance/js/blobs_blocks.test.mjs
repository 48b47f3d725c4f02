// Blocks: staged, listed, committed in any order, left out, refused.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";

import { NO_ETAG, code, freshContainer, put, readUrl, status, text } from "./blobs.mjs";
import { all, test } from "./target.mjs";

const id = (name) => Buffer.from(name).toString("base64");
const ids = (blocks) => (blocks ?? []).map((block) => Buffer.from(block.name, "base64").toString());
const stage = (blob, name, content, terms) =>
  blob.stageBlock(id(name), content, content.length, terms);
const fresh = async () => (await freshContainer()).getBlockBlobClient("b");

test("test_blocks_become_a_blob_in_the_order_of_the_list", async () => {
  const blob = await fresh();
  for (const name of ["1", "2", "3"]) {
    await stage(blob, name, name.repeat(3));
  }
  assert.equal(await blob.exists(), false);
  let list = await blob.getBlockList("all");
  assert.deepEqual(ids(list.committedBlocks), []);
  assert.deepEqual(ids(list.uncommittedBlocks).sort(), ["1", "2", "3"]);
  await blob.commitBlockList([id("3"), id("1")], { metadata: { a: "b" } });
  assert.equal(await text(blob), "333111");
  list = await blob.getBlockList("all");
  assert.deepEqual(ids(list.committedBlocks), ["3", "1"]);
  assert.deepEqual(ids(list.uncommittedBlocks), []);
  assert.deepEqual(list.committedBlocks.map((block) => block.size), [3, 3]);
  assert.deepEqual((await blob.getProperties()).metadata, { a: "b" });
});

test("test_committed_blocks_can_be_used_again", async () => {
  const blob = await fresh();
  await stage(blob, "1", "one");
  await stage(blob, "2", "two");
  await blob.commitBlockList([id("1"), id("2")]);
  await stage(blob, "3", "three");
  await blob.commitBlockList([id("3"), id("1"), id("2")]);
  assert.equal(await text(blob), "threeonetwo");
});

test("test_a_block_is_staged_again", async () => {
  const blob = await fresh();
  await stage(blob, "1", "first");
  await stage(blob, "1", "second");
  await blob.commitBlockList([id("1")]);
  assert.equal(await text(blob), "second");
});

test("test_a_block_that_is_not_there_is_refused", async () => {
  const blob = await fresh();
  await stage(blob, "1", "one");
  assert.equal(await code(() => blob.commitBlockList([id("2")])), "InvalidBlockList");
  assert.equal(await code(() => blob.commitBlockList([id("1"), id("2")])), "InvalidBlockList");
  assert.equal(await blob.exists(), false);
});

test("test_all_ids_have_one_length", async () => {
  const blob = await fresh();
  await stage(blob, "1", "one");
  assert.equal(await code(() => stage(blob, "4444", "two")), "InvalidBlobOrBlock");
});

test("test_an_empty_list_makes_an_empty_blob", async () => {
  const blob = await put(await freshContainer(), "b", "full");
  await blob.commitBlockList([]);
  assert.equal(await text(blob), "");
});

test("test_a_blob_of_blocks_is_not_listed_before_it_is_committed", async () => {
  const container = await freshContainer();
  await stage(container.getBlockBlobClient("b"), "1", "one");
  assert.deepEqual(await all(container.listBlobsFlat()), []);
  const [item, ...more] = await all(container.listBlobsFlat({ includeUncommitedBlobs: true }));
  assert.equal(item.name, "b");
  assert.equal(item.properties.contentLength, 0);
  assert.deepEqual(more, []);
});

test("test_a_whole_put_throws_staged_blocks_away", async () => {
  const container = await freshContainer();
  const blob = container.getBlockBlobClient("b");
  await stage(blob, "1", "one");
  await put(container, "b", "whole", { conditions: { ifNoneMatch: "*" } });
  const list = await blob.getBlockList("all");
  assert.deepEqual([ids(list.committedBlocks), ids(list.uncommittedBlocks)], [[], []]);
});

test("test_a_block_with_a_wrong_checksum_is_refused", async () => {
  const blob = await fresh();
  const sum = (content) => createHash("md5").update(content).digest();
  await stage(blob, "1", "one", { transactionalContentMD5: sum("one") });
  const wrong = () => stage(blob, "2", "two", { transactionalContentMD5: sum("") });
  assert.equal(await code(wrong), "Md5Mismatch");
});

test("test_conditions_guard_a_commit", async () => {
  const blob = await put(await freshContainer(), "b", "old");
  await stage(blob, "1", "new");
  const commit = (conditions) => blob.commitBlockList([id("1")], { conditions });
  assert.equal(await code(() => commit({ ifMatch: NO_ETAG })), "ConditionNotMet");
  assert([409, 412].includes(await status(() => commit({ ifNoneMatch: "*" }))));
  assert.equal(await text(blob), "old");
});

test("test_a_block_is_staged_from_a_url", async () => {
  const container = await freshContainer();
  const source = await put(container, "source", "0123456789");
  const blob = container.getBlockBlobClient("b");
  await blob.stageBlockFromURL(id("1"), readUrl(source), 2, 3);
  await blob.stageBlockFromURL(id("2"), readUrl(source));
  await blob.commitBlockList([id("1"), id("2")]);
  assert.equal(await text(blob), "2340123456789");
});
