// Versions: what a write replaces is kept, and is listed, read, deleted and brought back by its id.

import assert from "node:assert/strict";

import { code, freshContainer, put, setProperty, status, text } from "./blobs.mjs";
import { all, test } from "./target.mjs";

/** Gives a container of an account that keeps versions. Azurite keeps none. */
async function versioned(body) {
  const container = await freshContainer();
  await setProperty("<IsVersioningEnabled>true</IsVersioningEnabled>");
  try {
    await body(container, container.getBlockBlobClient("b"));
  } finally {
    await setProperty("<IsVersioningEnabled>false</IsVersioningEnabled>");
  }
}

/** Puts a blob and gives the id of its version. */
async function putVersion(blob, content) {
  return (await blob.upload(content, content.length)).versionId;
}

/** The ids of all versions in the order of the list, and which of them are current. */
async function listed(container) {
  const items = await all(container.listBlobsFlat({ includeVersions: true }));
  return [items.map((item) => item.versionId), items.map((item) => item.isCurrentVersion === true)];
}

test("test_every_write_makes_a_version", async () => {
  await versioned(async (container, blob) => {
    const [one, two] = [await putVersion(blob, "one"), await putVersion(blob, "two")];
    const three = (await blob.setMetadata({ a: "b" })).versionId;
    assert.deepEqual(await listed(container), [[one, two, three], [false, false, true]]);
    const plain = await all(container.listBlobsFlat());
    assert.deepEqual(plain.map((item) => item.versionId), [undefined]);
    const id = Buffer.from("1").toString("base64");
    await blob.stageBlock(id, "four", 4);
    const four = (await blob.commitBlockList([id])).versionId;
    const current = [false, false, false, true];
    assert.deepEqual(await listed(container), [[one, two, three, four], current]);
  });
});

test("test_a_list_shows_what_is_deleted_and_has_versions", async () => {
  await versioned(async (container) => {
    for (const name of ["a", "b"]) {
      await put(container, name, "one");
    }
    await container.deleteBlob("a");
    const items = await all(container.listBlobsFlat({ includeDeletedWithVersions: true }));
    const shown = items.map((item) => [item.name, item.hasVersionsOnly === true]);
    assert.deepEqual(shown, [["a", true], ["b", false]]);
  });
});

test("test_a_version_is_read_by_its_id", async () => {
  await versioned(async (container, blob) => {
    const [one, two] = [await putVersion(blob, "one"), await putVersion(blob, "two")];
    assert.equal(await text(blob.withVersion(one)), "one");
    assert.equal(await text(blob.withVersion(two)), "two");
    const current = await blob.getProperties();
    assert.deepEqual([current.versionId, current.isCurrentVersion], [two, true]);
    assert.equal((await blob.withVersion(two).getProperties()).isCurrentVersion, true);
    const old = await blob.withVersion(one).getProperties();
    assert.equal(old.versionId, one);
    assert.notEqual(old.isCurrentVersion, true);
    const unknown = blob.withVersion("2020-01-01T00:00:00.0000000Z");
    assert.equal(await code(() => unknown.download()), "BlobNotFound");
  });
});

test("test_a_version_is_deleted_by_its_id", async () => {
  await versioned(async (container, blob) => {
    const [one, two] = [await putVersion(blob, "one"), await putVersion(blob, "two")];
    await blob.withVersion(one).delete();
    assert.deepEqual(await listed(container), [[two], [true]]);
    assert.equal(await status(() => blob.withVersion(one).download()), 404);
    const refused = await code(() => blob.withVersion(two).delete());
    assert.equal(refused, "OperationNotAllowedOnRootBlob");
    assert.equal(await text(blob), "two");
  });
});

test("test_a_deleted_blob_leaves_its_versions", async () => {
  await versioned(async (container, blob) => {
    const [one, two] = [await putVersion(blob, "one"), await putVersion(blob, "two")];
    await blob.delete();
    assert.equal(await blob.exists(), false);
    assert.deepEqual(await all(container.listBlobsFlat()), []);
    assert.deepEqual(await listed(container), [[one, two], [false, false]]);
    assert.equal(await text(blob.withVersion(one)), "one");
    assert.equal(await text(blob.withVersion(two)), "two");
    const three = await putVersion(blob, "three");
    assert.deepEqual(await listed(container), [[one, two, three], [false, false, true]]);
  });
});

test("test_a_version_is_promoted_by_a_copy", async () => {
  await versioned(async (container, blob) => {
    const [one, two] = [await putVersion(blob, "one"), await putVersion(blob, "two")];
    const poller = await blob.beginCopyFromURL(blob.withVersion(one).url);
    const copy = await poller.pollUntilDone();
    assert.equal(copy.copyStatus, "success");
    const three = (await blob.getProperties()).versionId;
    assert(![one, two].includes(three));
    assert.equal(await text(blob), "one");
    assert.deepEqual(await listed(container), [[one, two, three], [false, false, true]]);
  });
});

test("test_a_snapshot_is_a_version_too", async () => {
  await versioned(async (container, blob) => {
    const one = await putVersion(blob, "one");
    const { versionId } = await blob.createSnapshot();
    assert(![undefined, one].includes(versionId));
    assert.deepEqual(await listed(container), [[one, versionId], [false, true]]);
    await blob.delete({ deleteSnapshots: "include" });
    assert.deepEqual(await listed(container), [[one, versionId], [false, false]]);
    assert.equal(await text(blob.withVersion(one)), "one");
  });
});

test("test_a_version_has_tags_and_a_tier_of_its_own", async () => {
  await versioned(async (container, blob) => {
    const old = blob.withVersion(await putVersion(blob, "one"));
    await putVersion(blob, "two");
    await old.setTags({ age: "old" });
    assert.deepEqual((await old.getTags()).tags, { age: "old" });
    assert.deepEqual((await blob.getTags()).tags, {});
    await old.setAccessTier("Cool");
    assert.equal((await old.getProperties()).accessTier, "Cool");
    assert.equal((await blob.getProperties()).accessTier, "Hot");
  });
});

for (const size of [1, 2, 4]) {
  test(`test_pages_of_versions_add_up_to_the_list[${size}]`, async () => {
    await versioned(async (container) => {
      const expected = [];
      for (const name of ["a", "b", "c"]) {
        for (const content of ["1", "2", "3"]) {
          const version = await putVersion(container.getBlockBlobClient(name), content);
          expected.push(`${name} ${version}`);
        }
      }
      const found = [];
      const pages = container.listBlobsFlat({ includeVersions: true });
      for await (const page of pages.byPage({ maxPageSize: size })) {
        assert(page.segment.blobItems.length <= size);
        found.push(...page.segment.blobItems.map((item) => `${item.name} ${item.versionId}`));
      }
      assert.deepEqual(found, expected);
    });
  });
}

test("test_nothing_is_kept_where_nobody_asked_for_it", async () => {
  const container = await freshContainer();
  const blob = await put(container, "b", "one");
  assert.equal(await putVersion(blob, "two"), undefined);
  assert.deepEqual(await listed(container), [[undefined], [false]]);
});
