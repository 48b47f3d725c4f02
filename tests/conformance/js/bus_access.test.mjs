// Who may do what, and what there is not.

import assert from "node:assert/strict";

import { client, connect, queue, receiver, send, take, text, using } from "./bus_target.mjs";
import { refusal, test } from "./target.mjs";

test("test_a_wrong_key_is_refused", async () => {
  const name = await queue();
  await using(connect("WRONG"), async (other) => {
    const error = await refusal(() => other.createSender(name).sendMessages({ body: "a" }));
    assert.equal(error.code, "UnauthorizedAccess");
  });
});

test("test_an_entity_that_is_not_there_cannot_be_received_from", async () => {
  const one = receiver("missing");
  const error = await refusal(() => one.receiveMessages(1, { maxWaitTimeInMs: 1000 }));
  assert.equal(error.code, "MessagingEntityNotFound");
});

test("test_an_entity_that_is_not_there_cannot_be_sent_to", async () => {
  const error = await refusal(() => client.createSender("missing").sendMessages({ body: "a" }));
  assert.equal(error.code, "MessagingEntityNotFound");
});

test("test_names_are_the_same_in_any_case", async () => {
  const name = await queue();
  await send(name.toUpperCase(), "a");
  await using(receiver(name), async (one) => assert.equal(text((await take(one, 1))[0]), "a"));
});

test("test_a_message_over_the_limit_is_refused", async () => {
  const name = await queue();
  await refusal(() => send(name, "x".repeat(20_000_000)));
});
