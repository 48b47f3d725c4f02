// Entity group transactions: every kind of change, all or nothing, and which change is to blame.

import assert from "node:assert/strict";

import { all, code, freshTable, keys, refusal, test } from "./target.mjs";

const entity = (rowKey, properties = {}) => ({ partitionKey: "p", rowKey, ...properties });

/** The place of the change that is to blame, and the service's code. */
async function refused(table, operations) {
  const error = await refusal(() => table.submitTransaction(operations));
  return [Number.parseInt(error.message, 10), error.code];
}

test("test_a_transaction_makes_every_kind_of_change", async () => {
  const table = await freshTable();
  for (const row of ["merged", "replaced", "deleted"]) {
    await table.createEntity(entity(row, { A: 1 }));
  }
  const answer = await table.submitTransaction([
    ["create", entity("created", { A: 1 })],
    ["update", entity("merged", { B: 2 }), "Merge"],
    ["update", entity("replaced", { B: 2 }), "Replace"],
    ["upsert", entity("upserted", { B: 2 }), "Merge"],
    ["upsert", entity("put", { B: 2 }), "Replace"],
    ["delete", entity("deleted")],
  ]);
  assert.equal(answer.status, 202);
  assert.deepEqual(answer.subResponses.map((part) => part.status), Array(6).fill(204));
  assert(answer.subResponses.slice(0, 5).every((part) => part.etag));
  assert(answer.getResponseForEntity("created"));
  const found = (await all(table.listEntities())).map(
    (item) => `${item.rowKey} ${"A" in item ? "A" : ""}${"B" in item ? "B" : ""}`,
  );
  assert.deepEqual(found, ["created A", "merged AB", "put B", "replaced B", "upserted B"]);
});

test("test_a_transaction_of_a_hundred_changes_is_made", async () => {
  const table = await freshTable();
  const create = (_, row) => ["create", entity(String(row))];
  await table.submitTransaction(Array.from({ length: 100 }, create));
  assert.equal((await keys(table.listEntities())).length, 100);
});

test("test_a_refused_change_is_named_and_nothing_is_changed", async () => {
  const table = await freshTable();
  await table.createEntity(entity("there"));
  const operations = ["new", "there", "more"].map((row) => ["create", entity(row)]);
  assert.deepEqual(await refused(table, operations), [1, "EntityAlreadyExists"]);
  assert.deepEqual(await keys(table.listEntities()), ["pthere"]);
});

test("test_a_stale_etag_refuses_the_transaction", async () => {
  const table = await freshTable();
  const { etag } = await table.createEntity(entity("there", { A: 1 }));
  await table.updateEntity(entity("there", { A: 2 }));
  const operations = [
    ["create", entity("new")],
    ["update", entity("there", { A: 3 }), "Merge", { etag }],
  ];
  assert.deepEqual(await refused(table, operations), [1, "UpdateConditionNotSatisfied"]);
  assert.equal((await table.getEntity("p", "there")).A, 2);
});

test("test_a_missing_entity_refuses_the_transaction", async () => {
  const table = await freshTable();
  const operations = [
    ["create", entity("new")],
    ["update", entity("missing"), "Merge"],
  ];
  assert.deepEqual(await refused(table, operations), [1, "ResourceNotFound"]);
  assert.equal(await code(() => table.getEntity("p", "new")), "ResourceNotFound");
});

test("test_an_entity_may_appear_once_in_a_transaction", async () => {
  const table = await freshTable();
  const operations = [
    ["create", entity("r")],
    ["upsert", entity("r", { A: 1 })],
  ];
  assert.equal((await refused(table, operations))[1], "InvalidDuplicateRow");
});

// Azure's refusal can be read by every SDK; Azurite's has parts that Python's cannot take apart.
test("test_more_than_a_hundred_changes_are_refused", async () => {
  const table = await freshTable();
  const create = (_, row) => ["create", entity(String(row))];
  const operations = Array.from({ length: 101 }, create);
  assert.equal((await refused(table, operations))[1], "InvalidInput");
  assert.deepEqual(await keys(table.listEntities()), []);
});

test("test_a_transaction_over_four_mebibytes_is_refused", async () => {
  const table = await freshTable();
  const wide = Object.fromEntries(
    Array.from({ length: 15 }, (_, number) => [`P${number}`, "x".repeat(30_000)]),
  );
  const operations = Array.from({ length: 10 }, (_, row) => ["create", entity(String(row), wide)]);
  assert.equal((await refusal(() => table.submitTransaction(operations))).statusCode, 413);
});
