// Snapshots: what a blob was, kept beside it.

import assert from "node:assert/strict";

import { NO_ETAG, code, freshContainer, names, put, text } from "./blobs.mjs";
import { all, test } from "./target.mjs";

async function filled(terms) {
  const container = await freshContainer();
  return { container, blob: await put(container, "b", "one", terms) };
}

const snapshots = async (container) =>
  (await all(container.listBlobsFlat({ includeSnapshots: true }))).map(
    (item) => item.snapshot || undefined,
  );

test("test_a_snapshot_keeps_what_was", async () => {
  const { container, blob } = await filled({ metadata: { n: "1" } });
  const { snapshot } = await blob.createSnapshot();
  await put(container, "b", "two", { metadata: { n: "2" } });
  const old = blob.withSnapshot(snapshot);
  assert.equal(await text(old), "one");
  assert.deepEqual((await old.getProperties()).metadata, { n: "1" });
  assert.equal(await text(blob), "two");
});

test("test_a_snapshot_may_have_metadata_of_its_own", async () => {
  const { blob } = await filled({ metadata: { n: "1" } });
  const { snapshot } = await blob.createSnapshot({ metadata: { s: "1" } });
  assert.deepEqual((await blob.withSnapshot(snapshot).getProperties()).metadata, { s: "1" });
  assert.deepEqual((await blob.getProperties()).metadata, { n: "1" });
});

test("test_snapshots_are_listed_before_their_blob", async () => {
  const { container, blob } = await filled();
  const first = (await blob.createSnapshot()).snapshot;
  const second = (await blob.createSnapshot()).snapshot;
  assert.deepEqual(await snapshots(container), [first, second, undefined]);
  assert.deepEqual(await names(container.listBlobsFlat()), ["b"]);
});

test("test_a_blob_with_snapshots_is_deleted_with_them_or_not_at_all", async () => {
  const { container, blob } = await filled();
  const { snapshot } = await blob.createSnapshot();
  assert.equal(await code(() => blob.delete()), "SnapshotsPresent");
  await blob.delete({ deleteSnapshots: "only" });
  assert.equal(await text(blob), "one");
  assert.equal(await code(() => blob.withSnapshot(snapshot).download()), "BlobNotFound");
  await blob.createSnapshot();
  await blob.delete({ deleteSnapshots: "include" });
  assert.deepEqual(await snapshots(container), []);
});

test("test_one_snapshot_is_deleted", async () => {
  const { container, blob } = await filled();
  const first = (await blob.createSnapshot()).snapshot;
  const second = (await blob.createSnapshot()).snapshot;
  await blob.withSnapshot(first).delete();
  const left = await snapshots(container);
  assert.deepEqual(left.sort(), [second, undefined]);
});

test("test_a_snapshot_is_not_written_to", async () => {
  const { blob } = await filled();
  const { snapshot } = await blob.createSnapshot();
  const missing = blob.withSnapshot("2020-01-01T00:00:00.0000000Z");
  assert.equal(await code(() => missing.download()), "BlobNotFound");
  assert.equal(await text(blob.withSnapshot(snapshot)), "one");
});

test("test_a_snapshot_becomes_the_blob_again", async () => {
  const { container, blob } = await filled();
  const { snapshot } = await blob.createSnapshot();
  await put(container, "b", "two");
  const copy = await blob.beginCopyFromURL(blob.withSnapshot(snapshot).url);
  await copy.pollUntilDone();
  assert.equal(await text(blob), "one");
});

test("test_a_condition_guards_a_snapshot", async () => {
  const { blob } = await filled();
  const refused = () => blob.createSnapshot({ conditions: { ifMatch: NO_ETAG } });
  assert.equal(await code(refused), "ConditionNotMet");
});
