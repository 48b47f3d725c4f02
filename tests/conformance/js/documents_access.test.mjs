// Documents: keys, users, permissions and resource tokens.

import assert from "node:assert/strict";

import { CosmosClient } from "@azure/cosmos";

import { database, endpoint, ids, make, status } from "./documents_target.mjs";
import { freshName, test } from "./target.mjs";

test("test_a_wrong_key_is_refused", async () => {
  const client = new CosmosClient({ endpoint, key: Buffer.from("wrong").toString("base64") });
  assert.equal(await status(() => client.databases.readAll().fetchAll()), 401);
});

test("test_users_are_created_listed_and_deleted", async () => {
  const id = freshName("u");
  const { user } = await database.users.create({ id });
  assert.equal((await user.read()).resource.id, id);
  assert.ok(ids((await database.users.readAll().fetchAll()).resources).includes(id));
  assert.equal(await status(() => database.users.create({ id })), 409);
  await database.users.upsert({ id });
  await user.delete();
  assert.equal(await status(() => user.read()), 404);
});

async function permission(container, permissionMode) {
  const { user } = await database.users.create({ id: freshName("u") });
  const { resource } = await user.permissions.create({ id: "p", permissionMode, resource: container.url });
  return [user, resource];
}

test("test_permissions_are_read_and_replaced", async () => {
  const container = await make();
  const [user, made] = await permission(container, "Read");
  assert.ok(made.permissionMode === "Read" && made._token);
  const one = user.permission("p");
  const changed = await one.replace({ id: "p", permissionMode: "All", resource: container.url });
  assert.equal(changed.resource.permissionMode, "All");
  assert.deepEqual(ids((await user.permissions.readAll().fetchAll()).resources), ["p"]);
  await one.delete();
  assert.equal(await status(() => one.read()), 404);
});

const bearer = (container, token) => {
  const client = new CosmosClient({ endpoint, resourceTokens: { [container.url]: token } });
  return client.database(database.id).container(container.id);
};

test("test_a_token_for_reading_reads_and_does_not_write", async () => {
  const container = await make();
  await container.items.create({ id: "1", pk: "a" });
  const [, made] = await permission(container, "Read");
  const there = bearer(container, made._token);
  assert.equal((await there.item("1", "a").read()).resource.id, "1");
  const found = await there.items.query("SELECT * FROM c", { partitionKey: "a" }).fetchAll();
  assert.deepEqual(ids(found.resources), ["1"]);
  assert.equal(await status(() => there.items.create({ id: "2", pk: "a" })), 403);
});

test("test_a_token_for_everything_writes_in_its_container_alone", async () => {
  const container = await make();
  const [, made] = await permission(container, "All");
  await bearer(container, made._token).items.create({ id: "1", pk: "a" });
  const other = await make();
  assert.equal(await status(() => bearer(other, made._token).item("1", "a").read()), 403);
});
