// Containers: create, list, properties, metadata, policies, leases, delete.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import { blobs, code, freshContainer, hours, names, put, status } from "./blobs.mjs";
import { all, freshName, test } from "./target.mjs";

test("test_a_container_is_created_once", async () => {
  const container = blobs.getContainerClient(freshName("c"));
  await container.create({ metadata: { one: "1" } });
  const properties = await container.getProperties();
  assert.deepEqual(properties.metadata, { one: "1" });
  assert(properties.etag && properties.lastModified);
  assert.deepEqual([properties.leaseState, properties.leaseStatus], ["available", "unlocked"]);
  assert.equal(properties.blobPublicAccess, undefined);
  assert(!properties.hasImmutabilityPolicy && !properties.hasLegalHold);
  assert.equal(await code(() => container.create()), "ContainerAlreadyExists");
});

for (const name of ["Upper", "a--b", "-ab", "a_b"]) {
  test(`test_a_bad_name_is_refused[${name}]`, async () => {
    assert.equal(await code(() => blobs.createContainer(name)), "InvalidResourceName");
  });
}

test("test_a_name_must_have_the_right_length", async () => {
  for (const name of ["ab", "a".repeat(64)]) {
    assert.equal(await status(() => blobs.createContainer(name)), 400);
  }
});

test("test_a_container_that_is_not_there_is_not_found", async () => {
  const container = blobs.getContainerClient(freshName("c"));
  assert.equal(await container.exists(), false);
  for (const call of [
    () => container.getProperties(),
    () => container.delete(),
    () => container.getAccessPolicy(),
    () => container.setMetadata({ a: "b" }),
    () => names(container.listBlobsFlat()),
    () => put(container, "b", "x"),
  ]) {
    assert.equal(await code(call), "ContainerNotFound");
  }
});

test("test_a_deleted_container_is_gone_and_so_are_its_blobs", async () => {
  const container = await freshContainer();
  const blob = await put(container, "b", "x");
  await container.delete();
  assert.equal(await container.exists(), false);
  assert.equal(await code(() => blob.download()), "ContainerNotFound");
});

test("test_metadata_is_replaced_as_a_whole", async () => {
  const container = await freshContainer();
  const before = await container.getProperties();
  await container.setMetadata({ one: "1", two: "2" });
  await container.setMetadata({ three: "3" });
  const after = await container.getProperties();
  assert.deepEqual(after.metadata, { three: "3" });
  assert.notEqual(after.etag, before.etag);
  await container.setMetadata({});
  assert.deepEqual((await container.getProperties()).metadata, {});
});

test("test_containers_are_listed_by_prefix_and_page", async () => {
  const prefix = freshName("l").slice(0, 13);
  const expected = [0, 1, 2, 3, 4].map((n) => `${prefix}-${n}`);
  for (const name of expected) {
    await blobs.getContainerClient(name).create({ metadata: { n: name.slice(-1) } });
  }
  const pages = await all(blobs.listContainers({ prefix }).byPage({ maxPageSize: 2 }));
  const found = pages.map((page) => page.containerItems.map((item) => item.name));
  assert.deepEqual(found, [expected.slice(0, 2), expected.slice(2, 4), expected.slice(4)]);
  const listed = await all(blobs.listContainers({ prefix, includeMetadata: true }));
  assert.deepEqual(listed.map((item) => item.metadata.n), ["0", "1", "2", "3", "4"]);
  for (const { properties } of listed) {
    assert(properties.etag && properties.lastModified && properties.leaseState === "available");
  }
});

test("test_policies_are_kept_and_given_back", async () => {
  const container = await freshContainer();
  const accessPolicy = { permissions: "rl", startsOn: hours(0), expiresOn: hours(1) };
  await container.setAccessPolicy("blob", [{ id: "readers", accessPolicy }]);
  let kept = await container.getAccessPolicy();
  assert.equal(kept.blobPublicAccess, "blob");
  assert.deepEqual(
    kept.signedIdentifiers.map((item) => [item.id, item.accessPolicy.permissions]),
    [["readers", "rl"]],
  );
  await container.setAccessPolicy(undefined, []);
  kept = await container.getAccessPolicy();
  assert.equal(kept.blobPublicAccess, undefined);
  assert.deepEqual(kept.signedIdentifiers, []);
});

test("test_a_leased_container_is_not_deleted_without_the_lease", async () => {
  const container = await freshContainer();
  const lease = container.getBlobLeaseClient();
  await lease.acquireLease(15);
  assert.equal((await container.getProperties()).leaseState, "leased");
  assert.equal(await code(() => container.delete()), "LeaseIdMissing");
  const mismatch = () => container.delete({ conditions: { leaseId: randomUUID() } });
  assert.equal(await code(mismatch), "LeaseIdMismatchWithContainerOperation");
  const other = container.getBlobLeaseClient();
  assert.equal(await code(() => other.acquireLease(15)), "LeaseAlreadyPresent");
  await put(container, "b", "x");
  await container.delete({ conditions: { leaseId: lease.leaseId } });
});

test("test_a_lease_of_a_container_goes_its_way", async () => {
  const container = await freshContainer();
  const [first, second] = [randomUUID(), randomUUID()];
  const lease = container.getBlobLeaseClient(first);
  assert.equal((await lease.acquireLease(-1)).leaseId, first);
  assert.equal((await container.getProperties()).leaseDuration, "infinite");
  await lease.renewLease();
  assert.equal((await lease.changeLease(second)).leaseId, second);
  assert.equal((await lease.breakLease(0)).leaseTime, 0);
  assert.equal((await container.getProperties()).leaseState, "broken");
  await lease.releaseLease();
  assert.equal((await container.getProperties()).leaseState, "available");
  const absent = () => container.setMetadata({}, { conditions: { leaseId: second } });
  assert.equal(await code(absent), "LeaseNotPresentWithContainerOperation");
});

test("test_conditions_guard_a_container", async () => {
  const container = await freshContainer();
  const modified = (await container.getProperties()).lastModified.getTime();
  const [earlier, later] = [new Date(modified - 3_600_000), new Date(modified + 3_600_000)];
  const unmodified = { conditions: { ifModifiedSince: later } };
  assert.equal(await code(() => container.setMetadata({ a: "b" }, unmodified)), "ConditionNotMet");
  await container.setMetadata({ a: "b" }, { conditions: { ifModifiedSince: earlier } });
  const changed = { conditions: { ifUnmodifiedSince: earlier } };
  assert.equal(await code(() => container.delete(changed)), "ConditionNotMet");
  await container.delete({ conditions: { ifUnmodifiedSince: later } });
});
