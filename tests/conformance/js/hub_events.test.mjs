// Events over AMQP: published, read, and what is said about hubs.

import assert from "node:assert/strict";

import { EventHubConsumerClient } from "@azure/event-hubs";
import { BlobCheckpointStore } from "@azure/eventhubs-checkpointstore-blob";
import { BlobServiceClient, StorageSharedKeyCredential } from "@azure/storage-blob";
import kafkajs from "kafkajs";

import { freshHub, read, send, string, texts, withProducer } from "./hub_target.mjs";
import * as kafka from "./kafka_target.mjs";
import { freshName, target, test } from "./target.mjs";

const { CompressionTypes, Partitioners } = kafkajs;
const numbers = (from, to) => Array.from({ length: to - from }, (_, at) => String(from + at));
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const first = { partitionId: "0" };

test("test_events_are_published_and_read", async () => {
  const hub = await freshHub();
  const sent = { body: "hello", properties: { text: "a", number: 7 } };
  await withProducer(hub, (producer) => producer.sendBatch([sent], { partitionId: "1" }));
  const [event] = await read(hub, 1);
  assert.deepEqual([event.partition, event.body], ["1", "hello"]);
  assert.deepEqual([event.sequenceNumber, event.offset], [0, "0"]);
  assert.deepEqual(event.properties, sent.properties);
  assert(event.enqueuedTimeUtc && !event.partitionKey);
});

test("test_events_of_a_key_are_in_one_partition_and_in_order", async () => {
  const hub = await freshHub();
  for (let at = 0; at < 100; at += 20) {
    await send(hub, numbers(at, at + 20), { partitionKey: "k" });
  }
  const events = await read(hub, 100);
  assert.deepEqual([...new Set(events.map((event) => event.partition))], ["1"]);
  assert.deepEqual(texts(events), numbers(0, 100));
  assert(events.every((event) => event.partitionKey === "k"));
});

test("test_events_without_a_key_go_to_all_partitions", async () => {
  const hub = await freshHub();
  await withProducer(hub, async (producer) => {
    for (const body of numbers(0, 4)) {
      await producer.sendBatch([{ body }]);
    }
  });
  const events = await read(hub, 4);
  assert.deepEqual([...new Set(events.map((event) => event.partition))].sort(), ["0", "1"]);
});

test("test_a_reader_begins_at_an_offset_a_number_or_a_time", async () => {
  const hub = await freshHub();
  await send(hub, ["0", "1", "2"], first);
  await sleep(50);
  const last = (await read(hub, 3, { partition: "0" }))[2];
  await sleep(50);
  await send(hub, ["3", "4"], first);
  const begin = async (count, startPosition) =>
    texts(await read(hub, count, { partition: "0", startPosition }));
  assert.deepEqual(await begin(3, { sequenceNumber: 1 }), ["2", "3", "4"]);
  const inclusive = { sequenceNumber: 1, isInclusive: true };
  assert.deepEqual(await begin(4, inclusive), ["1", "2", "3", "4"]);
  assert.deepEqual(await begin(2, { offset: last.offset }), ["3", "4"]);
  assert.deepEqual(await begin(2, { enqueuedOn: last.enqueuedTimeUtc }), ["3", "4"]);
});

test("test_a_reader_at_the_end_gets_what_comes_next", async () => {
  const hub = await freshHub();
  await send(hub, ["old"], first);
  const later = sleep(1500).then(() => send(hub, ["new"], first));
  const startPosition = { offset: "@latest" };
  assert.deepEqual(texts(await read(hub, 1, { partition: "0", startPosition })), ["new"]);
  await later;
});

test("test_hubs_and_partitions_are_described", async () => {
  const hub = await freshHub();
  await send(hub, ["0", "1", "2"], first);
  await withProducer(hub, async (producer) => {
    const about = await producer.getEventHubProperties();
    assert.deepEqual([about.name, about.partitionIds], [hub, ["0", "1"]]);
    const one = await producer.getPartitionProperties("0");
    assert.deepEqual([one.beginningSequenceNumber, one.lastEnqueuedSequenceNumber], [0, 2]);
    assert.deepEqual([one.lastEnqueuedOffset, one.isEmpty], ["2", false]);
    assert((await producer.getPartitionProperties("1")).isEmpty);
  });
});

test("test_a_reader_with_a_higher_epoch_takes_the_partition", async () => {
  const hub = await freshHub();
  await send(hub, ["x"], first);
  const consumer = new EventHubConsumerClient("$Default", string(), hub);
  let fail;
  const failed = new Promise((resolve) => (fail = resolve));
  const handlers = { processEvents: async () => {}, processError: async (error) => fail(error) };
  const options = { startPosition: { offset: "-1" }, ownerLevel: 1 };
  consumer.subscribe("0", handlers, options);
  await sleep(1500);
  assert.deepEqual(texts(await read(hub, 1, { partition: "0", ownerLevel: 2 })), ["x"]);
  assert.equal((await failed).code, "ReceiverDisconnectedError");
  await consumer.close();
});

test("test_the_end_of_the_partition_is_told_with_events", async () => {
  const hub = await freshHub();
  await send(hub, ["0", "1", "2"], first);
  const options = { partition: "0", trackLastEnqueuedEventProperties: true };
  const [event] = await read(hub, 3, options);
  assert.equal(event.context.lastEnqueuedEventProperties.sequenceNumber, 2);
});

test("test_processors_share_partitions_by_checkpoints_on_blobs", async () => {
  const hub = await freshHub();
  const credential = new StorageSharedKeyCredential(target.account, target.key);
  const blobs = new BlobServiceClient(`${target.endpoints.blobs}/${target.account}`, credential);
  const container = blobs.getContainerClient(freshName("c"));
  await container.create();
  const run = async (until) => {
    const store = new BlobCheckpointStore(container);
    const consumer = new EventHubConsumerClient("$Default", string(), hub, store);
    const came = [];
    await new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`only ${came} came`)), 60000);
      consumer.subscribe(
        {
          processEvents: async (events, context) => {
            for (const event of events) {
              came.push(event.body);
              await context.updateCheckpoint(event);
            }
            if (came.includes(until)) {
              clearTimeout(late);
              resolve();
            }
          },
          processError: async () => {},
        },
        { startPosition: { offset: "-1" } },
      );
    });
    await consumer.close();
    return came;
  };
  await send(hub, ["0", "1", "2"], first);
  assert.deepEqual(await run("2"), ["0", "1", "2"]);
  await send(hub, ["3"], first);
  assert.deepEqual(await run("3"), ["3"]);
});

test("test_what_is_published_over_amqp_is_read_over_kafka_and_back", async () => {
  const hub = await freshHub();
  const over = { body: Buffer.from("over amqp") };
  await withProducer(hub, (producer) => producer.sendBatch([over], { partitionKey: "k" }));
  const [message] = await kafka.read(hub, 1);
  assert.deepEqual([message.key.toString(), message.value.toString()], ["k", "over amqp"]);
  await kafka.send(hub, [{ partition: 1, key: "key", value: "over kafka", headers: { h: "v" } }]);
  const events = await read(hub, 2);
  const bodies = texts(events).map((body) => body.toString());
  assert.deepEqual(bodies.sort(), ["over amqp", "over kafka"]);
  const event = events.find((each) => each.body.toString() === "over kafka");
  assert.deepEqual([event.partitionKey, event.properties.h], ["key", "v"]);
});

// This client compresses with gzip only.
test("test_what_kafka_has_compressed_is_read_over_amqp", async () => {
  const hub = await freshHub();
  const sent = numbers(0, 50).map((number) => `${number} ${"text ".repeat(100)}`);
  const producer = kafka.kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner });
  await producer.connect();
  const messages = sent.map((value) => ({ key: "k", partition: 0, value }));
  await producer.send({ topic: hub, compression: CompressionTypes.GZIP, messages });
  await producer.disconnect();
  const events = await read(hub, 50, { partition: "0" });
  assert.deepEqual(texts(events).map(String), sent);
  assert.deepEqual(events.map((event) => String(event.sequenceNumber)), numbers(0, 50));
});

test("test_a_compacted_hub_is_read_over_its_gaps", async () => {
  const config = { "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0" };
  const hub = await freshHub(1, config);
  for (const number of numbers(0, 4)) {
    await send(hub, [`a${number}`], { partitionKey: "a" });
    await send(hub, [`b${number}`], { partitionKey: "b" });
  }
  await kafka.send(hub, [{ key: "a", value: "a4" }]);
  let found = [];
  for (const end = Date.now() + 30_000; Date.now() < end && found[0] !== "b3"; ) {
    await sleep(1000);
    found = texts(await read(hub, 2)).map(String).slice(0, 2);
  }
  assert.deepEqual(found, ["b3", "a4"]);
});

test("test_a_missing_hub_a_missing_group_and_a_wrong_key_are_refused", async () => {
  const one = (producer) => producer.sendBatch([{ body: "x" }]);
  await assert.rejects(withProducer(freshName("no"), one));
  const hub = await freshHub();
  await assert.rejects(withProducer(hub, one, "wrong"));
});
