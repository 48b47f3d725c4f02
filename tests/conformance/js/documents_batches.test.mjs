// Documents: transactional batches, and many operations in one request.

import assert from "node:assert/strict";

import { everything, ids, make, sorted, status } from "./documents_target.mjs";
import { test } from "./target.mjs";

const codes = (response) => response.result.map((one) => one.statusCode);
const create = (id, pk = "a") => ({ operationType: "Create", resourceBody: { id, pk } });

test("test_a_batch_does_all_of_its_operations", async () => {
  const container = await make();
  await container.items.create({ id: "old", pk: "a", n: 1 });
  const done = await container.items.batch(
    [
      create("1"),
      { operationType: "Upsert", resourceBody: { id: "2", pk: "a" } },
      { operationType: "Replace", id: "old", resourceBody: { id: "old", pk: "a", n: 2 } },
      { operationType: "Patch", id: "old", resourceBody: [{ op: "incr", path: "/n", value: 5 }] },
      { operationType: "Read", id: "old" },
      { operationType: "Delete", id: "1" },
    ],
    "a",
  );
  assert.deepEqual(codes(done), [201, 201, 200, 200, 200, 204]);
  assert.equal(done.result[4].resourceBody.n, 7);
  assert.deepEqual(sorted(ids(await everything(container))), ["2", "old"]);
});

test("test_a_batch_that_fails_does_nothing", async () => {
  const container = await make();
  await container.items.create({ id: "1", pk: "a" });
  const done = await container.items.batch([create("2"), create("1")], "a");
  assert.deepEqual(codes(done), [424, 409]);
  assert.deepEqual(ids(await everything(container)), ["1"]);
});

test("test_an_operation_of_a_batch_has_an_etag", async () => {
  const container = await make();
  const { resource: made } = await container.items.create({ id: "1", pk: "a" });
  await container.items.upsert({ id: "1", pk: "a", n: 1 });
  const replace = { operationType: "Replace", id: "1", ifMatch: made._etag, resourceBody: { id: "1", pk: "a" } };
  assert.deepEqual(codes(await container.items.batch([replace], "a")), [412]);
});

test("test_a_batch_has_at_most_a_hundred_operations", async () => {
  const container = await make();
  const operations = Array.from({ length: 101 }, (_, n) => create(`${n}`));
  // The SDK refuses some itself, without a status.
  const refused = await status(() => container.items.batch(operations, "a"));
  assert.ok(refused === 400 || refused === undefined, refused);
  assert.equal((await container.items.batch(operations.slice(0, 100), "a")).result.length, 100);
});

test("test_items_of_another_partition_key_fail_the_batch", async () => {
  const container = await make();
  assert.deepEqual(codes(await container.items.batch([create("1", "b")], "a")), [400]);
});
