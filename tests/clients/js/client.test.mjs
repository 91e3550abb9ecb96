// Run by test_js.py against a real service: node --test, with its address and keys in the environment.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";

const { Scrubjay, ScrubjayError } = await import(process.env.SCRUBJAY_CLIENT);
const { SCRUBJAY_URL: url, SCRUBJAY_KEY: key, SCRUBJAY_READER: reader } = process.env;
const memory = new Scrubjay({ url, key, scope: "acme/alice" });

test("what was retained is recalled, with the fields of the service", async () => {
  const retained = await memory.retain({ content: "Alice prefers green tea", kind: "preference" });
  assert.equal(retained.outcome, "stored");
  const found = await memory.recall({ query: "What tea does Alice like?" });
  assert.equal(found.hits[0].memory.id, retained.id);
  assert.equal((await memory.get({ id: retained.id })).content, "Alice prefers green tea");
});

test("a memory is corrected, pinned and forgotten by its id", async () => {
  const { id } = await memory.retain({ content: "Bob lives in Oslo" });
  const next = await memory.supersede({ id, content: "Bob lives in Bergen" });
  assert.equal((await memory.amend({ id: next.id, pinned: true })).pinned, true);
  const receipt = await memory.forgetOne({ id: next.id });
  assert.equal(receipt.erased, 2);
  await assert.rejects(memory.get({ id: next.id }), { name: "ScrubjayError", status: 404 });
});

test("a write under the same idempotency key is one write", async () => {
  const options = { idempotencyKey: "once" };
  const first = await memory.retain({ content: "Carol collects stamps" }, options);
  const again = await memory.retain({ content: "Carol collects stamps" }, options);
  assert.equal(again.id, first.id);
});

test("a listing is followed over all of its pages", async () => {
  for (let number = 0; number < 7; number += 1) {
    await memory.retain({ content: `Page ${number} of the diary`, tags: ["diary"] });
  }
  const seen = [];
  for await (const one of memory.each("browse", { tags: ["diary"], limit: 3 })) seen.push(one.id);
  assert.equal(new Set(seen).size, 7);
});

test("a filter by metadata travels as JSON", async () => {
  await memory.retain({ content: "Apollo ships in May", metadata: { project: "apollo" } });
  const page = await memory.browse({ where: { project: "apollo" } });
  assert.deepEqual(page.data.map((one) => one.content), ["Apollo ships in May"]);
});

test("a turn, a conversation and a document are written and read", async () => {
  await memory.record({ id: "turn-1", user: "I live in Lyon.", assistant: "Noted." });
  assert.equal((await memory.turns()).data[0].id, "turn-1");
  await memory.append({ conversation: "chat", entries: [{ body: { role: "user" } }] });
  assert.equal((await memory.conversation({ conversation: "chat" })).entries.length, 1);
  await memory.put({ name: "notes/tea.md", value: "Three minutes." });
  assert.equal((await memory.document({ name: "notes/tea.md" })).value, "Three minutes.");
});

test("an export is bytes and the number of its memories", async () => {
  const exported = await memory.export({ sealed: false });
  assert.ok(exported.content instanceof Uint8Array && exported.memories > 0);
});

test("another scope of a call is that call's alone", async () => {
  const elsewhere = await memory.count({}, { scope: "acme/bob" }).catch((error) => error.code);
  assert.notEqual(elsewhere, (await memory.count()).data);
});

test("a refused request is an error with code, hint and status", async () => {
  const weak = new Scrubjay({ url, key: reader, scope: "acme/alice" });
  await assert.rejects(weak.retain({ content: "No" }), (error) => {
    assert.ok(error instanceof ScrubjayError);
    assert.deepEqual([error.code, error.status], ["forbidden", 403]);
    assert.ok(error.message && error.hint);
    return true;
  });
  await assert.rejects(memory.recall({ query: "" }), { status: 422 });
});

test("an address that is none, or a missing id, is said before anything is sent", async () => {
  assert.throws(() => new Scrubjay({ url: "localhost", key }), { code: "invalid" });
  await assert.rejects(memory.get({}), { code: "invalid" });
});

async function listening(answer) {
  const server = createServer(answer);
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { server, url: `http://127.0.0.1:${server.address().port}` };
}

test("a broken connection is tried once more only where that cannot write twice", async () => {
  let asked = 0;
  const { server, url: broken } = await listening((request) => {
    asked += 1;
    request.socket.destroy();
  });
  const client = new Scrubjay({ url: broken, key });
  await assert.rejects(client.recall({ query: "tea" }), { code: "store" });
  assert.equal(asked, 2);
  await assert.rejects(client.append({ conversation: "a", entries: [] }), { code: "store" });
  assert.equal(asked, 3);
  server.close();
});

test("a service that does not answer in time is said, and a caller's abort is the caller's", async () => {
  const { server, url: silent } = await listening(() => {});
  const client = new Scrubjay({ url: silent, key, milliseconds: 50 });
  await assert.rejects(client.count(), { code: "busy" });
  const signal = AbortSignal.abort();
  await assert.rejects(client.count({}, { signal }), { name: "AbortError" });
  server.closeAllConnections();
  server.close();
});
