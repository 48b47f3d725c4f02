// Leases of blobs: who has one writes, others wait.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { code, freshContainer, put, text } from "./blobs.mjs";
import { test } from "./target.mjs";

const leased = (leaseId) => ({ conditions: { leaseId } });

async function filled() {
  const container = await freshContainer();
  return { container, blob: await put(container, "b", "one") };
}

test("test_a_lease_guards_writes_and_not_reads", async () => {
  const { container, blob } = await filled();
  const lease = blob.getBlobLeaseClient();
  const { leaseId } = await lease.acquireLease(15);
  const properties = await blob.getProperties();
  assert.deepEqual([properties.leaseState, properties.leaseStatus], ["leased", "locked"]);
  assert.equal(properties.leaseDuration, "fixed");
  assert.equal(await text(blob), "one");
  assert.equal(await code(() => put(container, "b", "two")), "LeaseIdMissing");
  assert.equal(await code(() => blob.setMetadata({ a: "b" })), "LeaseIdMissing");
  assert.equal(await code(() => blob.delete()), "LeaseIdMissing");
  const other = leased(randomUUID());
  const mismatch = "LeaseIdMismatchWithBlobOperation";
  assert.equal(await code(() => put(container, "b", "two", other)), mismatch);
  assert.equal(await code(() => blob.download(0, undefined, other)), mismatch);
  await put(container, "b", "two", leased(leaseId));
  assert.equal((await blob.getProperties()).leaseState, "leased");
  await blob.delete(leased(leaseId));
});

test("test_a_lease_guards_what_has_no_etag_too", async () => {
  const { blob } = await filled();
  const { leaseId } = await blob.getBlobLeaseClient().acquireLease(15);
  assert.equal(await code(() => blob.setTags({ a: "b" })), "LeaseIdMissing");
  assert.equal(await code(() => blob.setAccessTier("Cool")), "LeaseIdMissing");
  await blob.createSnapshot();
  await blob.setTags({ a: "b" }, leased(leaseId));
  await blob.setAccessTier("Cool", leased(leaseId));
  assert.deepEqual((await blob.getTags()).tags, { a: "b" });
});

test("test_a_lease_is_renewed_changed_and_released", async () => {
  const { container, blob } = await filled();
  const [first, second] = [randomUUID(), randomUUID()];
  const lease = blob.getBlobLeaseClient(first);
  assert.equal((await lease.acquireLease(-1)).leaseId, first);
  assert.equal((await blob.getProperties()).leaseDuration, "infinite");
  await lease.renewLease();
  assert.equal((await lease.changeLease(second)).leaseId, second);
  const wrong = blob.getBlobLeaseClient(first);
  assert.equal(await code(() => wrong.renewLease()), "LeaseIdMismatchWithLeaseOperation");
  assert.equal(await code(() => wrong.releaseLease()), "LeaseIdMismatchWithLeaseOperation");
  assert.equal(await code(() => wrong.acquireLease(15)), "LeaseAlreadyPresent");
  await lease.releaseLease();
  assert.equal((await blob.getProperties()).leaseState, "available");
  await put(container, "b", "two");
  const absent = () => put(container, "b", "three", leased(second));
  assert.equal(await code(absent), "LeaseNotPresentWithBlobOperation");
});

test("test_a_lease_is_broken", async () => {
  const { container, blob } = await filled();
  const lease = blob.getBlobLeaseClient();
  await lease.acquireLease(-1);
  assert([29, 30].includes((await lease.breakLease(30)).leaseTime));
  assert.equal((await blob.getProperties()).leaseState, "breaking");
  assert.equal(await code(() => put(container, "b", "two")), "LeaseIdMissing");
  assert.equal((await lease.breakLease(0)).leaseTime, 0);
  assert.equal((await blob.getProperties()).leaseState, "broken");
  assert.equal(await code(() => lease.renewLease()), "LeaseIsBrokenAndCannotBeRenewed");
  await put(container, "b", "two");
  const none = (await put(container, "c", "x")).getBlobLeaseClient();
  assert.equal(await code(() => none.breakLease(0)), "LeaseNotPresentWithLeaseOperation");
});

test("test_a_lease_ends_by_itself", async () => {
  const { container, blob } = await filled();
  await blob.getBlobLeaseClient().acquireLease(15);
  await sleep(15_500);
  assert.equal((await blob.getProperties()).leaseState, "expired");
  await put(container, "b", "two");
  assert.equal((await blob.getProperties()).leaseState, "available");
});

test("test_a_lease_lasts_within_limits", async () => {
  const { blob } = await filled();
  for (const seconds of [14, 61, 0]) {
    const refused = () => blob.getBlobLeaseClient().acquireLease(seconds);
    assert.equal(await code(refused), "InvalidHeaderValue");
  }
});
