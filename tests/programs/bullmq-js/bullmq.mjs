// Queues of BullMQ on the cache: jobs done in parallel, priorities, delays, retries, flows, repeated jobs, a paused queue.
// Every step of BullMQ is a Lua script over several keys, some of which it does not declare.

import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";

import { FlowProducer, Queue, QueueEvents, Worker } from "bullmq";

const [host, port] = process.argv[2].split(":");
const connection = { host, port: Number(port), maxRetriesPerRequest: null };
const open = [];
const made = (thing) => (open.push(thing), thing);

async function within(seconds, what, body) {
  const late = pause(seconds * 1000, undefined, { ref: false }).then(() => {
    throw new Error(`${what}: not done within ${seconds} s`);
  });
  await Promise.race([body(), late]);
  console.log(`${what}: done`);
}

await within(30, "200 jobs of 4 workers", async () => {
  const queue = made(new Queue("plain", { connection }));
  const done = new Map();
  const work = async (job) => {
    done.set(job.data.n, (done.get(job.data.n) ?? 0) + 1);
    return job.data.n * 2;
  };
  const workers = [1, 2, 3, 4].map(() => made(new Worker("plain", work, { connection, concurrency: 5 })));
  const jobs = Array.from({ length: 200 }, (_, n) => ({ name: "job", data: { n } }));
  await queue.addBulk(jobs);
  while ((await queue.getCompletedCount()) < 200) {
    await pause(20);
  }
  assert.equal(done.size, 200);
  assert([...done.values()].every((times) => times === 1), "a job ran twice");
  await Promise.all(workers.map((worker) => worker.close()));
  const [last] = await queue.getJobs(["completed"], 0, 0);
  assert.equal(last.returnvalue, last.data.n * 2);
  assert.equal((await queue.getJobCounts()).waiting, 0);
});

await within(30, "priorities and delays", async () => {
  const queue = made(new Queue("ordered", { connection }));
  await queue.add("low", {}, { priority: 10 });
  await queue.add("high", {}, { priority: 1 });
  await queue.add("late", {}, { delay: 500 });
  const order = [];
  const worker = made(new Worker("ordered", async (job) => void order.push(job.name), { connection }));
  while (order.length < 3) {
    await pause(20);
  }
  assert.deepEqual(order, ["high", "low", "late"]);
  await worker.close();
});

await within(30, "retries and failures", async () => {
  const queue = made(new Queue("failing", { connection }));
  const events = made(new QueueEvents("failing", { connection }));
  await events.waitUntilReady();
  let attempts = 0;
  const work = async (job) => {
    if (job.name === "never" || ++attempts < 3) {
      throw new Error("not yet");
    }
    return attempts;
  };
  made(new Worker("failing", work, { connection }));
  const job = await queue.add("third time", {}, { attempts: 5, backoff: { type: "fixed", delay: 50 } });
  assert.equal(await job.waitUntilFinished(events), 3);
  const never = await queue.add("never", {}, { attempts: 2 });
  await assert.rejects(never.waitUntilFinished(events), /not yet/);
  assert.equal(await queue.getFailedCount(), 1);
});

await within(30, "a flow with children", async () => {
  const flow = made(new FlowProducer({ connection }));
  const tree = {
    name: "parent",
    queueName: "flow",
    children: [1, 2, 3].map((n) => ({ name: "child", queueName: "flow", data: { n } })),
  };
  let sum;
  const work = async (job) => {
    if (job.name === "child") {
      return job.data.n;
    }
    sum = Object.values(await job.getChildrenValues()).reduce((a, b) => a + b, 0);
    return sum;
  };
  made(new Worker("flow", work, { connection }));
  await flow.add(tree);
  while (sum === undefined) {
    await pause(20);
  }
  assert.equal(sum, 6);
});

await within(30, "repeated jobs and a paused queue", async () => {
  const queue = made(new Queue("repeated", { connection }));
  let runs = 0;
  made(new Worker("repeated", async () => void runs++, { connection }));
  await queue.upsertJobScheduler("often", { every: 200 }, { name: "tick" });
  while (runs < 3) {
    await pause(20);
  }
  await queue.pause();
  assert.equal(await queue.isPaused(), true);
  await queue.removeJobScheduler("often");
  await queue.resume();
  await queue.obliterate({ force: true });
  assert.equal(await queue.count(), 0);
});

await Promise.all(open.map((thing) => thing.close()));
console.log("BullMQ works on the cache");
