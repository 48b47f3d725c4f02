// What is kept after deleting or replacing it: soft delete, versions, immutability, legal holds.

import assert from "node:assert/strict";

import { blobs, code, freshContainer, hours, put, setProperty, text } from "./blobs.mjs";
import { all, test } from "./target.mjs";

/** Azurite takes the policy and does not keep it. */
async function softly(body) {
  const container = await freshContainer();
  await blobs.setProperties({ deleteRetentionPolicy: { enabled: true, days: 5 } });
  try {
    await body(container);
  } finally {
    await blobs.setProperties({ deleteRetentionPolicy: { enabled: false } });
  }
}

test("test_a_deleted_blob_comes_back", async () => {
  await softly(async (container) => {
    const blob = await put(container, "b", "one", { metadata: { a: "b" } });
    await blob.delete();
    assert.equal(await blob.exists(), false);
    assert.deepEqual(await all(container.listBlobsFlat()), []);
    const [item] = await all(container.listBlobsFlat({ includeDeleted: true }));
    assert(item.deleted && item.properties.deletedOn);
    assert(item.properties.remainingRetentionDays !== undefined);
    await blob.undelete();
    assert.equal(await text(blob), "one");
    assert.deepEqual((await blob.getProperties()).metadata, { a: "b" });
  });
});

test("test_an_overwritten_blob_leaves_a_snapshot", async () => {
  await softly(async (container) => {
    const blob = await put(container, "b", "one");
    await put(container, "b", "two");
    const terms = { includeDeleted: true, includeSnapshots: true };
    const listed = await all(container.listBlobsFlat(terms));
    assert.deepEqual(listed.map((item) => Boolean(item.deleted)), [true, false]);
    await blob.undelete();
    assert.equal(await text(blob), "two");
  });
});

test("test_nothing_comes_back_that_was_not_kept", async () => {
  const blob = await put(await freshContainer(), "b", "one");
  await blob.delete();
  assert.equal(await code(() => blob.undelete()), "BlobNotFound");
});

/** Azurite keeps no deleted containers. */
async function keepingContainers(body) {
  const policy = (inner) =>
    setProperty(`<ContainerDeleteRetentionPolicy>${inner}</ContainerDeleteRetentionPolicy>`);
  const container = await freshContainer();
  await put(container, "b", "one");
  await policy("<Enabled>true</Enabled><Days>3</Days>");
  try {
    await body(container, container.containerName);
  } finally {
    await policy("<Enabled>false</Enabled>");
  }
}

const containers = (prefix, terms = {}) => all(blobs.listContainers({ prefix, ...terms }));

test("test_a_deleted_container_comes_back", async () => {
  await keepingContainers(async (container, name) => {
    await container.setMetadata({ a: "b" });
    await container.delete();
    assert.deepEqual(await containers(name), []);
    const [item] = await containers(name, { includeDeleted: true });
    assert(item.deleted && item.version && item.name === name);
    assert.equal(await code(() => container.getProperties()), "ContainerNotFound");
    const { containerClient } = await blobs.undeleteContainer(name, item.version);
    assert.deepEqual((await containerClient.getProperties()).metadata, { a: "b" });
    assert.equal(await text(containerClient.getBlobClient("b")), "one");
    const listed = await containers(name, { includeDeleted: true });
    assert.deepEqual(listed.map((it) => Boolean(it.deleted)), [false]);
    const again = () => blobs.undeleteContainer(name, item.version);
    assert.equal(await code(again), "ContainerNotFound");
  });
});

test("test_a_deleted_container_leaves_its_name_free", async () => {
  await keepingContainers(async (container, name) => {
    await container.delete();
    await container.create();
    assert.deepEqual(await all(container.listBlobsFlat()), []);
    const listed = await containers(name, { includeDeleted: true });
    const [old] = listed.filter((item) => item.deleted);
    const restore = () => blobs.undeleteContainer(name, old.version);
    assert.equal(await code(restore), "ContainerAlreadyExists");
    await container.delete();
    const { containerClient } = await restore();
    assert.equal(await text(containerClient.getBlobClient("b")), "one");
  });
});

// Azurite has no immutability policies.
test("test_a_policy_keeps_a_blob_as_it_is", async () => {
  const container = await freshContainer();
  const blob = await put(container, "b", "one");
  await blob.setImmutabilityPolicy({ expiriesOn: hours(1), policyMode: "Unlocked" });
  const { immutabilityPolicyMode } = await blob.getProperties();
  assert.equal(immutabilityPolicyMode.toLowerCase(), "unlocked");
  assert.equal(await code(() => put(container, "b", "two")), "BlobImmutableDueToPolicy");
  assert.equal(await code(() => blob.delete()), "BlobImmutableDueToPolicy");
  await blob.deleteImmutabilityPolicy();
  await blob.delete();
});

// Azurite has no legal holds.
test("test_a_legal_hold_keeps_a_blob_as_it_is", async () => {
  const blob = await put(await freshContainer(), "b", "one");
  await blob.setLegalHold(true);
  assert((await blob.getProperties()).legalHold);
  assert.equal(await code(() => blob.delete()), "BlobImmutableDueToLegalHold");
  await blob.setLegalHold(false);
  await blob.delete();
});
