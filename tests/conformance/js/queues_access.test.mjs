// Access: keys, signatures of accounts and queues, stored policies.

import assert from "node:assert/strict";

import {
  AccountSASPermissions,
  QueueClient,
  QueueSASPermissions,
  QueueServiceClient,
  StorageSharedKeyCredential,
  generateAccountSASQueryParameters,
  generateQueueSASQueryParameters,
} from "@azure/storage-queue";

import { credential, freshQueue, options, peek, receive, refused, status, texts, url } from "./queues_target.mjs";
import { all, target, test } from "./target.mjs";

const hours = (count) => new Date(Date.now() + count * 3_600_000);

/** A client of the queue that signs with a signature for it. */
function signed(queue, letters, terms = {}) {
  const permissions = letters && QueueSASPermissions.parse(letters);
  const own = letters ? { permissions, expiresOn: hours(1) } : {};
  const values = { queueName: queue.name, ...own, ...terms };
  const signature = generateQueueSASQueryParameters(values, credential);
  return new QueueClient(`${url}/${queue.name}?${signature}`, undefined, options);
}

/** A client of the service that signs with a signature of the account. */
function accountSigned(letters, resourceTypes) {
  const permissions = AccountSASPermissions.parse(letters);
  const values = { permissions, resourceTypes, services: "q", expiresOn: hours(1) };
  const signature = generateAccountSASQueryParameters(values, credential);
  return new QueueServiceClient(`${url}?${signature}`, undefined, options);
}

// Azure answers AuthenticationFailed; Azurite answers AuthorizationFailure.
test("test_a_wrong_key_is_refused", async () => {
  const wrong = new StorageSharedKeyCredential(target.account, "d3Jvbmc=");
  const client = new QueueServiceClient(url, wrong, options);
  const refusal = await refused(() => all(client.listQueues()));
  assert.deepEqual(refusal, [403, "AuthenticationFailed"]);
});

test("test_an_account_signature_grants_what_it_says", async () => {
  const { name } = await freshQueue();
  const listed = await all(accountSigned("l", "s").listQueues());
  assert(listed.some((queue) => queue.name === name));
  assert.equal(await status(() => all(accountSigned("r", "s").listQueues())), 403);
  assert.equal(await status(() => all(accountSigned("l", "o").listQueues())), 403);
  const writer = accountSigned("a", "o").getQueueClient(name);
  await writer.sendMessage("a");
  assert.equal(await status(() => peek(writer)), 403);
  assert.deepEqual(texts(await peek(accountSigned("r", "o").getQueueClient(name))), ["a"]);
  const worker = accountSigned("p", "o").getQueueClient(name);
  const [held] = await receive(worker);
  await worker.deleteMessage(held.messageId, held.popReceipt);
  assert.equal(await status(() => worker.clearMessages()), 403);
});

test("test_a_queue_signature_grants_what_it_says", async () => {
  const queue = await freshQueue();
  const adder = signed(queue, "a");
  await adder.sendMessage("a");
  assert.equal(await status(() => peek(adder)), 403);
  const reader = signed(queue, "r");
  assert.deepEqual(texts(await peek(reader)), ["a"]);
  assert.equal((await reader.getProperties()).approximateMessagesCount, 1);
  assert.equal(await status(() => receive(reader)), 403);
  const worker = signed(queue, "up");
  const [held] = await receive(worker);
  const updated = await worker.updateMessage(held.messageId, held.popReceipt, "b", 5);
  await worker.deleteMessage(held.messageId, updated.popReceipt);
  assert.equal(await status(() => worker.delete()), 403);
});

test("test_a_signature_holds_for_its_time_only", async () => {
  const queue = await freshQueue();
  const over = signed(queue, "r", { expiresOn: hours(-1) });
  assert.equal(await status(() => peek(over)), 403);
  const early = signed(queue, "r", { startsOn: hours(1), expiresOn: hours(2) });
  assert.equal(await status(() => peek(early)), 403);
});

test("test_a_signature_holds_for_its_addresses_only", async () => {
  const queue = await freshQueue();
  const ipRange = { start: "203.0.113.1", end: "203.0.113.9" };
  assert.equal(await status(() => peek(signed(queue, "r", { ipRange }))), 403);
});

test("test_a_stored_policy_gives_its_terms_and_takes_them_back", async () => {
  const queue = await freshQueue();
  await queue.sendMessage("a");
  const accessPolicy = { permissions: "r", startsOn: hours(-1), expiresOn: hours(1) };
  await queue.setAccessPolicy([{ id: "readers", accessPolicy }]);
  const { signedIdentifiers } = await queue.getAccessPolicy();
  assert.deepEqual(signedIdentifiers.map((item) => item.id), ["readers"]);
  assert.equal(signedIdentifiers[0].accessPolicy.permissions, "r");
  const client = signed(queue, undefined, { identifier: "readers" });
  assert.deepEqual(texts(await peek(client)), ["a"]);
  assert.equal(await status(() => client.sendMessage("b")), 403);
  await queue.setAccessPolicy([]);
  assert.deepEqual((await queue.getAccessPolicy()).signedIdentifiers, []);
  assert.equal(await status(() => peek(client)), 403);
});

test("test_too_many_policies_are_refused", async () => {
  const queue = await freshQueue();
  const policies = [0, 1, 2, 3, 4, 5].map((number) => ({
    id: String(number),
    accessPolicy: { permissions: "r", startsOn: hours(-1), expiresOn: hours(1) },
  }));
  assert.equal(await status(() => queue.setAccessPolicy(policies)), 400);
});
