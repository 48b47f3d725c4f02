// Who gets in, what a change needs, and what browsers are told to allow.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { logIn, open, portal, target } from "./browser.mjs";

let browser;
before(async () => { browser = await open(); });
after(async () => { await browser.close(); });

test("a wrong token does not get in", async () => {
  const { page } = browser;
  await page.goto(`${portal}/containers`);
  await page.getByLabel("Admin token").fill("not the token");
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByText("That is not the admin token.").waitFor();
  assert.deepEqual(await browser.context.cookies(), []);
  await page.goto(`${portal}/jobs`);
  assert.ok(page.url().includes("/portal/login"), page.url());
});

test("the right token gets in, to the page that was asked for, and a log-out ends it", async () => {
  const { page, context } = browser;
  await page.goto(`${portal}/jobs`);
  await page.getByLabel("Admin token").fill(target.token);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("heading", { name: "Jobs", level: 1 }).waitFor();
  const [cookie] = await context.cookies();
  assert.equal(cookie.httpOnly, true);
  assert.equal(cookie.sameSite, "Strict");
  const before = cookie.value;
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByRole("heading", { name: "Log in", level: 1 }).waitFor();
  // The id is worth nothing any more, even to somebody who kept it.
  const answer = await fetch(`${portal}/`, {
    headers: { cookie: `${cookie.name}=${before}` },
    redirect: "manual",
  });
  assert.equal(answer.status, 303);
});

test("a change without the secret of the session is refused", async () => {
  const { page, context } = browser;
  await logIn(page);
  const [cookie] = await context.cookies();
  const headers = {
    cookie: `${cookie.name}=${cookie.value}`,
    "content-type": "application/x-www-form-urlencoded",
  };
  const post = (body, more = {}) =>
    fetch(`${portal}/logout`, {
      method: "POST",
      headers: { ...headers, ...more },
      body,
      redirect: "manual",
    });
  const secret = await page.locator("input[name=csrf]").first().inputValue();
  for (const body of ["", "csrf=", "csrf=guess", `csrf=${cookie.value}`]) {
    assert.equal((await post(body)).status, 403, body);
  }
  const crossed = await post(`csrf=${secret}`, { "sec-fetch-site": "cross-site" });
  assert.equal(crossed.status, 403);
  await page.reload();
  await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
  assert.equal((await post(`csrf=${secret}`)).status, 303);
});

test("no key is shown before a click", async () => {
  const { page } = browser;
  await logIn(page);
  const key = target.account.key;
  assert.ok(!(await page.content()).includes(key));
  await page.getByRole("button", { name: `Show the keys of ${target.account.name}` }).click();
  await page.getByRole("heading", { name: `Keys of ${target.account.name}` }).waitFor();
  const shown = await page.locator("#string-1").textContent();
  assert.ok(shown.includes(`AccountKey=${key};`), shown);
  assert.ok(shown.includes(`TableEndpoint=${target.endpoints.tables}/${target.account.name};`));
});

test("pages load nothing from elsewhere and no script fails", async () => {
  assert.deepEqual(browser.faults.filter((fault) => !fault.includes("403")), []);
});
