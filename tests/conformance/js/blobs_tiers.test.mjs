// Tiers: hot, cool, cold, archived and brought back.

import assert from "node:assert/strict";

import { code, freshContainer, put, status } from "./blobs.mjs";
import { all, test } from "./target.mjs";

for (const tier of ["Hot", "Cool", "Cold"]) {
  test(`test_a_tier_is_set[${tier}]`, async () => {
    const container = await freshContainer();
    const blob = await put(container, "b", "x");
    assert((await blob.getProperties()).accessTierInferred);
    await blob.setAccessTier(tier);
    const properties = await blob.getProperties();
    assert.equal(properties.accessTier, tier);
    assert(!properties.accessTierInferred);
    const [item] = await all(container.listBlobsFlat());
    assert.equal(item.properties.accessTier, tier);
  });
}

test("test_a_blob_is_put_into_a_tier", async () => {
  const blob = await put(await freshContainer(), "b", "x", { tier: "Cool" });
  assert.equal((await blob.getProperties()).accessTier, "Cool");
});

test("test_an_archived_blob_is_not_read", async () => {
  const blob = await put(await freshContainer(), "b", "x");
  await blob.setAccessTier("Archive");
  assert.equal((await blob.getProperties()).accessTier, "Archive");
  assert.equal(await code(() => blob.download()), "BlobArchived");
});

test("test_an_archived_blob_is_brought_back", async () => {
  const blob = await put(await freshContainer(), "b", "x");
  await blob.setAccessTier("Archive");
  await blob.setAccessTier("Hot", { rehydratePriority: "High" });
  const { accessTier, archiveStatus } = await blob.getProperties();
  const found = `${accessTier} ${archiveStatus}`;
  assert(["Archive rehydrate-pending-to-hot", "Hot undefined"].includes(found), found);
});

test("test_a_tier_of_other_blobs_is_refused", async () => {
  const blob = await put(await freshContainer(), "b", "x");
  assert.equal(await status(() => blob.setAccessTier("P10")), 400);
});
