// Access: keys, signatures of accounts and tables, stored policies.

import assert from "node:assert/strict";

import {
  AzureNamedKeyCredential,
  AzureSASCredential,
  TableClient,
  TableServiceClient,
  generateAccountSas,
  generateTableSas,
} from "@azure/data-tables";

import { all, credential, freshTable, keys, options, refusal, target, test, url } from "./target.mjs";

const hours = (count) => new Date(Date.now() + count * 3_600_000);
const there = { partitionKey: "p", rowKey: "r" };

/** A client of the table that signs with a signature for it. */
function signed(table, terms) {
  const signature = new AzureSASCredential(generateTableSas(table.tableName, credential, terms));
  return new TableClient(url, table.tableName, signature, options);
}

/** A client that signs with a signature of the account: of the service, or of one table. */
function accountSigned(permissions, resourceTypes, table) {
  const terms = { permissions, resourceTypes, expiresOn: hours(1) };
  const signature = new AzureSASCredential(generateAccountSas(credential, terms));
  return table === undefined
    ? new TableServiceClient(url, signature, options)
    : new TableClient(url, table, signature, options);
}

const status = async (call) => (await refusal(call)).statusCode;

// Azure answers AuthenticationFailed; Azurite answers AuthorizationFailure.
test("test_a_wrong_key_is_refused", async () => {
  const wrong = new AzureNamedKeyCredential(target.account, "d3Jvbmc=");
  const client = new TableServiceClient(url, wrong, options);
  const error = await refusal(() => all(client.listTables()));
  assert.equal(error.statusCode, 403);
  assert.equal(error.details?.odataError?.code ?? error.code, "AuthenticationFailed");
});

test("test_an_account_signature_grants_what_it_says", async () => {
  const { tableName } = await freshTable();
  const listed = await all(accountSigned({ list: true }, "c").listTables());
  assert(listed.some((table) => table.name === tableName));
  assert.equal(await status(() => all(accountSigned({ query: true }, "c").listTables())), 403);
  assert.equal(await status(() => all(accountSigned({ list: true }, "o").listTables())), 403);
  const writer = accountSigned({ add: true }, "o", tableName);
  await writer.createEntity(there);
  assert.equal(await status(() => writer.getEntity("p", "r")), 403);
  assert(await accountSigned({ query: true }, "o", tableName).getEntity("p", "r"));
});

test("test_a_table_signature_grants_what_it_says", async () => {
  const table = await freshTable();
  const adder = signed(table, { permissions: { add: true }, expiresOn: hours(1) });
  await adder.createEntity(there);
  assert.equal(await status(() => adder.getEntity("p", "r")), 403);
  const reader = signed(table, { permissions: { query: true }, expiresOn: hours(1) });
  assert.deepEqual(await keys(reader.listEntities()), ["pr"]);
  assert.equal(await status(() => reader.deleteEntity("p", "r")), 403);
});

test("test_a_signature_holds_for_its_time_only", async () => {
  const table = await freshTable();
  const permissions = { query: true };
  for (const terms of [
    { permissions, expiresOn: hours(-1) },
    { permissions, startsOn: hours(1), expiresOn: hours(2) },
  ]) {
    assert.equal(await status(() => all(signed(table, terms).listEntities())), 403);
  }
});

// Azure refuses a signature for other addresses than the caller's; Azurite looks at no address.
test("test_a_signature_holds_for_its_addresses_only", async () => {
  const ipRange = { start: "203.0.113.1", end: "203.0.113.9" };
  const terms = { permissions: { query: true }, expiresOn: hours(1), ipRange };
  const client = signed(await freshTable(), terms);
  assert.equal(await status(() => all(client.listEntities())), 403);
});

// Azure keeps a signature to its range of keys; Azurite shows the whole table.
test("test_a_range_of_keys_bounds_a_signature", async () => {
  const table = await freshTable();
  for (const [partitionKey, rowKey] of ["a1", "b1", "b5", "c1", "c5", "d1"]) {
    await table.createEntity({ partitionKey, rowKey });
  }
  const client = signed(table, {
    permissions: { query: true, add: true },
    expiresOn: hours(1),
    startPartitionKey: "b",
    startRowKey: "2",
    endPartitionKey: "c",
    endRowKey: "3",
  });
  assert.deepEqual(await keys(client.listEntities()), ["b5", "c1"]);
  await client.createEntity({ partitionKey: "b", rowKey: "3" });
  const outside = { partitionKey: "d", rowKey: "3" };
  assert.equal(await status(() => client.createEntity(outside)), 403);
});

test("test_a_stored_policy_gives_its_terms_and_takes_them_back", async () => {
  const table = await freshTable();
  await table.createEntity(there);
  const accessPolicy = { start: hours(-1), expiry: hours(1), permission: "r" };
  await table.setAccessPolicy([{ id: "readers", accessPolicy }]);
  const stored = await table.getAccessPolicy();
  assert.deepEqual(stored.map((policy) => policy.id), ["readers"]);
  assert.equal(stored[0].accessPolicy.permission, "r");
  const client = signed(table, { identifier: "readers" });
  assert(await client.getEntity("p", "r"));
  assert.equal(await status(() => client.deleteEntity("p", "r")), 403);
  await table.setAccessPolicy([]);
  assert.equal((await table.getAccessPolicy()).length, 0);
  assert.equal(await status(() => client.getEntity("p", "r")), 403);
});

// In Azure a policy may leave its terms to the signatures that name it; Azurite takes none without terms.
test("test_a_stored_policy_may_leave_all_terms_open", async () => {
  const table = await freshTable();
  await table.setAccessPolicy([{ id: "nobody" }]);
  assert.deepEqual((await table.getAccessPolicy()).map((policy) => policy.id), ["nobody"]);
});
