// Bearer tokens over HTTPS, the keys that their bearers get, and what is signed with those.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

import {
  AnonymousCredential,
  BlobClient,
  BlobSASPermissions,
  BlobServiceClient,
  ContainerClient,
  ContainerSASPermissions,
  generateBlobSASQueryParameters,
} from "@azure/storage-blob";

import { blobs, freshContainer, hours, names, options, put, status, text } from "./blobs.mjs";
import { all, refusal, target, test } from "./target.mjs";

const { other_endpoints: others, account } = target;
const secureUrl = `${others["blobs-https"] ?? others.blobs}/${account}`;
const anybody = new AnonymousCredential();

/** A token of a user, as an identity provider would issue it but for its signature, which nobody checks. */
function token(changes) {
  const seconds = Math.floor(Date.now() / 1000);
  const claims = {
    aud: "https://storage.azure.com",
    iss: "https://sts.windows.net/ab1f708d-50f6-404c-a006-d71b2ac7a606/",
    iat: seconds - 60,
    nbf: seconds - 60,
    exp: seconds + 3600,
    oid: "23657296-5cd5-45b0-a809-d972a7f4dfe1",
    tid: "dd0d0df1-06c3-436c-8034-4b9a153097ce",
    ...changes,
  };
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${part({ alg: "RS256", typ: "JWT" })}.${part(claims)}.c2lnbmF0dXJl`;
}

/** A client of who has a token. */
function bearer(changes = {}) {
  const issued = { token: token(changes), expiresOnTimestamp: Date.now() + 3_600_000 };
  return new BlobServiceClient(secureUrl, { getToken: async () => issued }, options);
}

/** A container with the blobs `b` and `other`, made by the bearer of a token. */
async function filled() {
  const service = bearer();
  const container = await freshContainer(service);
  await put(container, "b", "x");
  await put(container, "other", "y");
  return { service, container, containerName: container.containerName };
}

test("test_a_token_lets_its_bearer_in", async () => {
  const { container } = await filled();
  assert.equal(await text(container.getBlobClient("b")), "x");
  assert.deepEqual(await names(container.listBlobsFlat()), ["b", "other"]);
});

const bad = {
  late: { exp: 1_000_000_000 },
  audience: { aud: "https://example.com" },
  issuer: { iss: "https://example.com/" },
};
for (const [name, claim] of Object.entries(bad)) {
  // Azurite answers 403, the original a challenge.
  test(`test_a_bad_token_is_refused[${name}]`, async () => {
    const error = await refusal(() => all(bearer(claim).listContainers()));
    assert.equal(error.statusCode, 401);
    const challenge = error.response.headers.get("www-authenticate");
    assert(challenge.startsWith("Bearer authorization_uri=https://"));
    assert(challenge.endsWith(" resource_id=https://storage.azure.com"));
  });
}

test("test_a_users_key_signs_for_a_blob", async () => {
  const { service, containerName } = await filled();
  const key = await service.getUserDelegationKey(hours(-1), hours(1));
  assert.equal(key.signedObjectId, "23657296-5cd5-45b0-a809-d972a7f4dfe1");
  assert.equal(key.signedTenantId, "dd0d0df1-06c3-436c-8034-4b9a153097ce");
  const permissions = BlobSASPermissions.parse("r");
  const terms = { containerName, blobName: "b", permissions, expiresOn: hours(1) };
  const signature = generateBlobSASQueryParameters(terms, key, account);
  const client = (blob) =>
    new BlobClient(`${secureUrl}/${containerName}/${blob}?${signature}`, anybody, options);
  assert.equal(await text(client("b")), "x");
  assert.equal(await status(() => client("b").delete()), 403);
  assert.equal(await status(() => client("other").download()), 403);
});

test("test_a_users_key_signs_for_a_container", async () => {
  const { service, containerName } = await filled();
  const key = await service.getUserDelegationKey(hours(-1), hours(1));
  const permissions = ContainerSASPermissions.parse("rl");
  const terms = { containerName, permissions, expiresOn: hours(1) };
  const signature = generateBlobSASQueryParameters(terms, key, account);
  const address = `${secureUrl}/${containerName}?${signature}`;
  const container = new ContainerClient(address, anybody, options);
  assert.deepEqual(await names(container.listBlobsFlat()), ["b", "other"]);
  assert.equal(await text(container.getBlobClient("other")), "y");
  assert.equal(await status(() => put(container, "new", "z")), 403);
});

test("test_a_signature_ends_with_the_users_key", async () => {
  const { service, containerName } = await filled();
  const key = await service.getUserDelegationKey(hours(-1), new Date(Date.now() + 3000));
  const permissions = BlobSASPermissions.parse("r");
  const terms = { containerName, blobName: "b", permissions, expiresOn: hours(1) };
  const signature = generateBlobSASQueryParameters(terms, key, account);
  const address = `${secureUrl}/${containerName}/b?${signature}`;
  const blob = new BlobClient(address, anybody, options);
  assert.equal(await text(blob), "x");
  await sleep(4000);
  assert.equal(await status(() => blob.download()), 403);
});

test("test_a_users_key_is_for_bearers_of_tokens", async () => {
  assert.equal(await status(() => blobs.getUserDelegationKey(hours(-1), hours(1))), 403);
});
