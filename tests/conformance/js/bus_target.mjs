// A client of the official Service Bus SDK for the target, fresh entities, and how messages are taken until all have come.
// Entities are made over plain HTTP: what the clients of the administration do is judged by tests of their own.

import { createHmac } from "node:crypto";
import { after } from "node:test";

import { ServiceBusClient } from "@azure/service-bus";

import { freshName, target } from "./target.mjs";

const RULE = "RootManageSharedAccessKey";
/** What all emulators of the service publish. It protects nothing, and Lazuli takes it on loopback only. */
const KEY = "SAS_KEY_VALUE";
const NAMESPACE = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect";
const host = target.endpoints.bus.split("://")[1].replace(/\/$/, "");

export function connect(key = KEY, options = {}) {
  const text =
    `Endpoint=sb://${host};SharedAccessKeyName=${RULE};SharedAccessKey=${key};` + "UseDevelopmentEmulator=true";
  return new ServiceBusClient(text, { retryOptions: { maxRetries: 0, ...options } });
}

export const client = connect();
after(() => client.close());

/** A shared access signature for a resource. */
function token(resource) {
  const quoted = encodeURIComponent(resource);
  const expires = Math.floor(Date.now() / 1000) + 600;
  const signature = createHmac("sha256", KEY).update(`${quoted}\n${expires}`).digest("base64");
  const sig = encodeURIComponent(signature);
  return `SharedAccessSignature sr=${quoted}&sig=${sig}&se=${expires}&skn=${RULE}`;
}

async function put(path, kind, properties) {
  const inside = Object.entries(properties).map(([name, value]) => `<${name}>${value}</${name}>`);
  const body =
    '<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml">' +
    `<${kind} xmlns="${NAMESPACE}">${inside.join("")}</${kind}></content></entry>`;
  const headers = { authorization: token(`http://${host}/`), "content-type": "application/atom+xml" };
  const answer = await fetch(`http://${host}/${path}?api-version=2021-05`, { method: "PUT", body, headers });
  if (answer.status !== 201) {
    throw new Error(`${answer.status} ${await answer.text()}`);
  }
}

/** A fresh queue with a name of its own. It stays: every run starts with fresh data. */
export async function queue(properties = {}) {
  const name = freshName("q");
  await put(name, "QueueDescription", properties);
  return name;
}

export async function topic(properties = {}) {
  const name = freshName("t");
  await put(name, "TopicDescription", properties);
  return name;
}

export async function subscription(topic, properties = {}) {
  const name = freshName("s");
  await put(`${topic}/subscriptions/${name}`, "SubscriptionDescription", properties);
  return name;
}

const message = (what) => (typeof what === "object" ? what : { body: what });

export async function send(name, ...messages) {
  const sender = client.createSender(name);
  await sender.sendMessages(messages.map(message));
  await sender.close();
}

/** Calls with something that is closed behind it. */
export async function using(opened, call) {
  const one = await opened;
  try {
    return await call(one);
  } finally {
    await one.close();
  }
}

export const receiver = (name, options = {}) => client.createReceiver(name, options);

/** This many messages, in the order in which they come. */
export async function take(receiver, count) {
  const taken = [];
  while (taken.length < count) {
    const more = await receiver.receiveMessages(count - taken.length, { maxWaitTimeInMs: 10000 });
    if (more.length === 0) {
      throw new Error(`${taken.length} of ${count} messages came`);
    }
    taken.push(...more);
  }
  return taken;
}

/** The body of a message as text, whichever SDK sent it. */
export const text = (one) => (Buffer.isBuffer(one.body) ? one.body.toString() : String(one.body));
export const texts = (messages) => messages.map(text);

export async function noneLeft(receiver) {
  return (await receiver.receiveMessages(1, { maxWaitTimeInMs: 500 })).length === 0;
}
