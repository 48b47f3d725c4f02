// Records over Kafka: produced and fetched.

import assert from "node:assert/strict";

import { CompressionTypes } from "kafkajs";

import { client, freshTopic, kafka, read, send, values, withAdmin } from "./kafka_target.mjs";
import { freshName, test } from "./target.mjs";

const numbers = (from, to) => Array.from({ length: to - from }, (_, at) => String(from + at));
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

test("test_a_record_is_produced_and_consumed", async () => {
  const topic = await freshTopic();
  const sent = { key: "k", value: "hello", headers: { one: "1" }, timestamp: "1234567890123" };
  const [went] = await send(topic, [sent]);
  assert.deepEqual([went.partition, went.baseOffset, went.errorCode], [0, "0", 0]);
  const [message] = await read(topic, 1);
  assert.deepEqual([message.key.toString(), message.value.toString()], ["k", "hello"]);
  assert.equal(message.headers.one.toString(), "1");
  assert.deepEqual([message.offset, message.timestamp], ["0", "1234567890123"]);
});

test("test_records_come_in_their_order", async () => {
  const topic = await freshTopic();
  await send(topic, numbers(0, 500).map((value) => ({ value })));
  const messages = await read(topic, 500);
  assert.deepEqual(values(messages), numbers(0, 500));
  assert.deepEqual(messages.map((message) => message.offset), numbers(0, 500));
});

test("test_compressed_records_are_passed_on", async () => {
  const topic = await freshTopic();
  const producer = kafka.producer();
  await producer.connect();
  const messages = numbers(0, 50).map((value) => ({ value: "x".repeat(1000) + value }));
  await producer.send({ topic, compression: CompressionTypes.GZIP, messages });
  await producer.disconnect();
  assert.deepEqual(values(await read(topic, 50)), messages.map(({ value }) => value));
});

test("test_an_idempotent_producer_leaves_no_gap", async () => {
  const topic = await freshTopic();
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 });
  await producer.connect();
  for (const value of numbers(0, 20)) {
    const [went] = await producer.send({ topic, messages: [{ value }] });
    assert.equal(went.baseOffset, value);
  }
  await producer.disconnect();
  assert.deepEqual(values(await read(topic, 20)), numbers(0, 20));
});

test("test_a_waiting_consumer_gets_a_record_at_once", async () => {
  const topic = await freshTopic();
  await send(topic, [{ value: "warm" }]);
  const consumer = kafka.consumer({ groupId: freshName("g"), maxWaitTimeInMs: 10000 });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  const came = [];
  await consumer.run({ eachMessage: async ({ message }) => came.push(message.value.toString()) });
  const until = async (count) => {
    const end = Date.now() + 30000;
    while (came.length < count && Date.now() < end) {
      await sleep(10);
    }
    return came.length;
  };
  assert.equal(await until(1), 1);
  await sleep(300);
  const began = Date.now();
  await send(topic, [{ value: "now" }]);
  assert.equal(await until(2), 2);
  assert(Date.now() - began < 5000);
  await consumer.disconnect();
});

test("test_a_consumer_reads_from_any_offset", async () => {
  const topic = await freshTopic();
  await send(topic, numbers(0, 20).map((value) => ({ value })));
  assert.deepEqual(values(await read(topic, 7, freshName("g"), "13")), numbers(13, 20));
  const [offsets] = await withAdmin((admin) => admin.fetchTopicOffsets(topic));
  assert.deepEqual([offsets.low, offsets.high], ["0", "20"]);
});

test("test_an_offset_is_found_by_time", async () => {
  const topic = await freshTopic();
  await send(topic, [{ value: "old" }]);
  await sleep(50);
  const between = Date.now();
  await sleep(50);
  await send(topic, [{ value: "new" }]);
  const [found] = await withAdmin((admin) => admin.fetchTopicOffsetsByTimestamp(topic, between));
  assert.equal(found.offset, "1");
});

test("test_a_record_that_is_too_large_is_refused", async () => {
  const topic = await freshTopic();
  const large = send(topic, [{ value: "x".repeat(2_000_000) }]);
  await assert.rejects(large, (error) => error.type === "MESSAGE_TOO_LARGE");
});

test("test_a_wrong_key_is_refused", async () => {
  const admin = client("Endpoint=sb://x;SharedAccessKey=d3Jvbmc=").admin();
  await assert.rejects(admin.connect(), /opens no namespace|authentication/i);
});

test("test_without_sasl_the_account_of_development_is_open", async () => {
  const [went] = await send(freshName("t"), [{ value: "x" }], {}, client(null));
  assert.equal(went.baseOffset, "0");
});

test("test_a_transaction_is_refused", async () => {
  const producer = kafka.producer({ transactionalId: "t", idempotent: true, maxInFlightRequests: 1 });
  await producer.connect();
  await assert.rejects(producer.transaction());
  await producer.disconnect();
});
