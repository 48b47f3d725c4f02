// The server that the tests run on, and calls of this SDK with promises for its callbacks.

import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";

import storage from "azure-storage";

const target = JSON.parse(readFileSync(process.env.LAZULI_PROGRAM_FILE, "utf8"));

/** The address of an account's service; `tables`, `queues` or `blobs`. */
export function address(front) {
  return `${target.endpoints[front]}/${target.account.name}`;
}

const connection = [
  "DefaultEndpointsProtocol=http",
  `AccountName=${target.account.name}`,
  `AccountKey=${target.account.key}`,
  `TableEndpoint=${address("tables")}`,
  `QueueEndpoint=${address("queues")}`,
  `BlobEndpoint=${address("blobs")}`,
].join(";");

export { connection, storage };

/** Calls what takes a callback, and gives its result. */
export function call(service, name, ...words) {
  return new Promise((resolve, reject) => {
    service[name](...words, (error, result) => (error ? reject(error) : resolve(result)));
  });
}

/** The status and the code of the refusal that a call ends with. */
export async function refusal(calling) {
  try {
    await calling;
  } catch (error) {
    return `${error.statusCode} ${error.code}`;
  }
  return "no refusal";
}

/** A name that nothing has yet, of letters and digits. */
export function fresh(kind) {
  return kind + randomBytes(6).toString("hex");
}

/** So many minutes from now. */
export function minutes(count) {
  return new Date(Date.now() + count * 60_000);
}
