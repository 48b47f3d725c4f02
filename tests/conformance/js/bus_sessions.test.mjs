// Sessions: one receiver at a time, messages in order, and a state.

import assert from "node:assert/strict";

import { client, connect, noneLeft, queue, send, take, texts, using } from "./bus_target.mjs";
import { refusal, test } from "./target.mjs";

const fresh = () => queue({ RequiresSession: "true" });
const of = (sessionId, body) => ({ sessionId, body });

test("test_a_session_gives_its_own_messages_in_order", async () => {
  const name = await fresh();
  await send(name, of("a", "a1"), of("b", "b1"), of("a", "a2"));
  await using(client.acceptSession(name, "a"), async (one) => {
    const got = await take(one, 2);
    assert.deepEqual(texts(got), ["a1", "a2"]);
    assert.equal(got[0].sessionId, "a");
    for (const each of got) {
      await one.completeMessage(each);
    }
    assert.ok(await noneLeft(one));
  });
});

test("test_the_next_session_is_one_that_has_messages", async () => {
  const name = await fresh();
  await send(name, of("a", "a1"));
  await using(client.acceptNextSession(name), async (one) => {
    assert.equal(one.sessionId, "a");
    await one.completeMessage((await take(one, 1))[0]);
  });
});

test("test_a_session_that_somebody_holds_cannot_be_accepted", async () => {
  const name = await fresh();
  await using(client.acceptSession(name, "a"), async () => {
    const error = await refusal(() => client.acceptSession(name, "a"));
    assert.equal(error.code, "SessionCannotBeLocked");
  });
  await using(client.acceptSession(name, "a"), async (one) => assert.equal(one.sessionId, "a"));
});

test("test_without_a_session_to_accept_the_wait_ends", async () => {
  const name = await fresh();
  await using(connect(undefined, { timeoutInMs: 1000 }), async (impatient) => {
    assert.equal((await refusal(() => impatient.acceptNextSession(name))).code, "ServiceTimeout");
  });
});

test("test_the_state_of_a_session_outlives_its_receiver", async () => {
  const name = await fresh();
  await using(client.acceptSession(name, "a"), async (one) => {
    assert.equal(await one.getSessionState(), null);
    await one.setSessionState("state");
  });
  await using(client.acceptSession(name, "a"), async (one) => {
    assert.equal(await one.getSessionState(), "state");
    await one.setSessionState(null);
    assert.equal(await one.getSessionState(), null);
  });
});

test("test_the_lock_of_a_session_can_be_renewed", async () => {
  await using(client.acceptSession(await fresh(), "a"), async (one) => {
    const until = one.sessionLockedUntilUtc;
    assert.ok((await one.renewSessionLock()) >= until);
  });
});

test("test_a_message_without_a_session_is_refused", async () => {
  const name = await fresh();
  await refusal(() => send(name, "a"));
});
