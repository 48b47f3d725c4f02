// Page blobs: written and cleared by pages, resized, numbered, compared with snapshots.

import assert from "node:assert/strict";

import { code, freshContainer, put, readUrl, status, text } from "./blobs.mjs";
import { test } from "./target.mjs";

const PAGE = 512;
const pages = (letter, count = 1) => letter.repeat(PAGE * count);
// The SDK's count is that of the bytes without the last one.
const ranges = (found) =>
  (found ?? []).map(({ offset, count }) => [offset / PAGE, (offset + count + 1) / PAGE]);
const write = (blob, letter, first, count, terms) =>
  blob.uploadPages(pages(letter, count), first * PAGE, count * PAGE, terms);

async function fresh() {
  const blob = (await freshContainer()).getPageBlobClient("p");
  await blob.create(8 * PAGE);
  return blob;
}

test("test_pages_are_written_and_read", async () => {
  const blob = await fresh();
  await write(blob, "a", 0, 2);
  await write(blob, "b", 4, 1);
  const expected = pages("a", 2) + pages("\0", 2) + pages("b") + pages("\0", 3);
  assert.equal(await text(blob), expected);
  const found = await blob.getPageRanges();
  assert.deepEqual(ranges(found.pageRange), [[0, 2], [4, 5]]);
  assert.deepEqual(ranges(found.clearRange), []);
  const properties = await blob.getProperties();
  assert.deepEqual([properties.blobType, properties.contentLength], ["PageBlob", 8 * PAGE]);
  assert.equal(properties.blobSequenceNumber, 0);
});

test("test_pages_are_cleared", async () => {
  const blob = await fresh();
  await write(blob, "a", 0, 4);
  await blob.clearPages(PAGE, PAGE);
  assert.equal(await text(blob), pages("a") + pages("\0") + pages("a", 2) + pages("\0", 4));
  assert.deepEqual(ranges((await blob.getPageRanges()).pageRange), [[0, 1], [2, 4]]);
});

test("test_ranges_of_pages_can_be_asked_for_in_part", async () => {
  const blob = await fresh();
  await write(blob, "a", 0, 8);
  const found = await blob.getPageRanges(2 * PAGE, 2 * PAGE);
  assert.deepEqual(ranges(found.pageRange), [[2, 4]]);
});

test("test_a_write_behind_the_end_is_refused", async () => {
  const blob = await fresh();
  assert.equal(await code(() => write(blob, "a", 8, 1)), "InvalidPageRange");
});

test("test_a_page_blob_has_whole_pages", async () => {
  const blob = (await freshContainer()).getPageBlobClient("odd");
  assert.equal(await status(() => blob.create(PAGE + 1)), 400);
});

test("test_a_page_blob_is_resized", async () => {
  const blob = await fresh();
  await write(blob, "a", 0, 8);
  await blob.resize(2 * PAGE);
  assert.equal(await text(blob), pages("a", 2));
  await blob.resize(4 * PAGE);
  assert.equal(await text(blob), pages("a", 2) + pages("\0", 2));
});

test("test_sequence_numbers_guard_writes", async () => {
  const blob = await fresh();
  const number = async () => (await blob.getProperties()).blobSequenceNumber;
  await blob.updateSequenceNumber("update", 7);
  assert.equal(await number(), 7);
  await blob.updateSequenceNumber("increment");
  await blob.updateSequenceNumber("max", 3);
  assert.equal(await number(), 8);
  for (const conditions of [
    { ifSequenceNumberEqualTo: 8 },
    { ifSequenceNumberLessThanOrEqualTo: 8 },
    { ifSequenceNumberLessThan: 9 },
  ]) {
    await write(blob, "a", 0, 1, { conditions });
  }
  for (const conditions of [
    { ifSequenceNumberEqualTo: 7 },
    { ifSequenceNumberLessThanOrEqualTo: 7 },
    { ifSequenceNumberLessThan: 8 },
  ]) {
    const refused = () => write(blob, "a", 0, 1, { conditions });
    assert.equal(await code(refused), "SequenceNumberConditionNotMet");
  }
});

test("test_only_a_page_blob_has_pages", async () => {
  const container = await freshContainer();
  await put(container, "b", pages("x"));
  const blob = container.getPageBlobClient("b");
  assert.equal(await code(() => write(blob, "a", 0, 1)), "InvalidBlobType");
  assert.equal(await code(() => blob.getPageRanges()), "InvalidBlobType");
});

// Azure answers what changed since the snapshot; Azurite answers all ranges.
test("test_pages_are_compared_with_a_snapshot", async () => {
  const blob = await fresh();
  await write(blob, "a", 0, 4);
  const { snapshot } = await blob.createSnapshot();
  await write(blob, "b", 1, 1);
  await blob.clearPages(3 * PAGE, PAGE);
  const found = await blob.getPageRangesDiff(0, 8 * PAGE, snapshot);
  assert.deepEqual(ranges(found.pageRange), [[1, 2]]);
  assert.deepEqual(ranges(found.clearRange), [[3, 4]]);
});

test("test_pages_come_from_a_url", async () => {
  const container = await freshContainer();
  const source = await put(container, "source", pages("s", 2));
  const blob = container.getPageBlobClient("p");
  await blob.create(8 * PAGE);
  await blob.uploadPagesFromURL(readUrl(source), 0, PAGE, PAGE);
  assert.equal(await text(blob), pages("\0") + pages("s") + pages("\0", 6));
});
