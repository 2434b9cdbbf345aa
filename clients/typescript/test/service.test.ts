// The client on a running service, which AGENT_MEMORY_BASE_URL and AGENT_MEMORY_API_KEY name.

import assert from "node:assert/strict";
import { openAsBlob } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import {
  AuthenticationError,
  BadRequestError,
  Client,
  ConflictError,
  NotFoundError,
  PreconditionFailedError,
  UnprocessableError,
} from "../src/index.js";

const memory = new Client({ agentId: "tester", userId: "tess" });

test("what is remembered is recalled, listed, found and forgotten", async () => {
  const noted = await memory.remember("The door code is 4711.", { metadata: { door: "north" } });

  assert.equal((await memory.recall("Which code opens the door?", { top_k: 1 })).results[0]?.text, noted.text);
  assert.deepEqual((await memory.memories({ kind: "note" }).toArray()).map((each) => each.id), [noted.id]);
  assert.ok((await memory.search("door code", { top_k: 1 })).results.length);
  assert.equal(await memory.forget(noted.id), undefined);
  await assert.rejects(memory.call("get_memory", { memory_id: noted.id }), NotFoundError);
});

test("turns are added, streamed, listed in pages, put into a prompt, and ended", async () => {
  await memory.addTurns("journey", [{ role: "user", content: "We fly to Madeira on 4 May." }]);
  async function* speak() {
    for (const number of [1, 2, 3]) yield { role: "user", content: `Line ${number} of the call.` };
  }
  await memory.streamTurns("journey", speak());

  const sizes = [];
  for await (const page of memory.turns("journey", { page_size: 3 }).pages()) sizes.push(page.results.length);
  assert.deepEqual(sizes, [3, 1]);
  assert.deepEqual((await memory.turns("journey", { page_size: 1 }).toArray(2)).map((each) => each.index), [0, 1]);
  const prompt = await memory.context("journey", "When do we fly to Madeira?", { max_tokens: 800 });
  assert.match(prompt.context, /4 May/);
  await memory.end("journey", { outcome: "success" });
  assert.ok(await memory.infer([{ role: "user", content: "I live in Lisbon." }]));
  assert.ok(await memory.infer("I live in Lisbon."));
});

test("knowledge and work go on in the next session", async () => {
  const fact = await memory.learn("Ana prefers window seats.");
  assert.ok((await memory.facts().toArray()).some((each) => each.id === fact.id));
  const goal = await memory.addGoal("book the flight to Madeira", { priority: 2 });
  await memory.recordTool("journey", "search_flights", { success: false, error_message: "timeout" });

  assert.match((await memory.resume()).text, /book the flight to Madeira/);
  await memory.complete(goal.id, "seats 12A and 12B");
  assert.deepEqual((await memory.goals({ status: "completed" }).toArray()).map((each) => each.id), [goal.id]);
});

test("a change does not overwrite another one", async () => {
  const goal = await memory.addGoal("book seats");
  const ids = { goal_id: goal.id };
  const { etag, requestId } = await memory.callRaw("get_goal", ids);
  assert.ok(etag && requestId);
  await memory.call("update_goal", ids, { priority: 5 }, { ifMatch: etag });

  const stale = memory.call("update_goal", ids, { priority: 7 }, { ifMatch: etag });

  await assert.rejects(stale, PreconditionFailedError);
  assert.equal((await memory.call("get_goal", ids)).priority, 5);
});

test("ids may hold any character", async () => {
  for (const id of ["a/b", "100 %", "gruß?#"]) {
    await memory.addTurns(id, [{ role: "user", content: "hello" }]);
    assert.equal((await memory.call("get_conversation", { conversation_id: id })).conversation_id, id);
  }
  await assert.rejects(memory.call("get_conversation", { conversation_id: ".." }), TypeError);
});

test("refusals say what is wrong", async () => {
  await assert.rejects(memory.addGoal("x", { priority: "high" as unknown as number }), (err) => {
    assert.ok(err instanceof BadRequestError);
    assert.deepEqual(Object.keys(err.errors), ["priority"]);
    assert.ok(err.code && err.requestId);
    return true;
  });
  await assert.rejects(new Client({ apiKey: "wrong" }).recall("x"), AuthenticationError);
  assert.throws(() => new Client({ apiKey: "" }), /There is no key/);
});

test("everything about a user is counted, then forgotten", async () => {
  const ben = new Client({ agentId: "assistant", userId: "ben" });
  await ben.remember("Ben is allergic to nuts.");

  await ben.forgetAll({ dry_run: true });
  assert.equal((await ben.memories().toArray()).length, 1);
  await ben.forgetAll({ dry_run: false });
  assert.deepEqual(await ben.memories().toArray(), []);
});

test("what belongs to a user is exported to a file, and imported again", async () => {
  await new Client({ agentId: "assistant", userId: "eva" }).remember("Eva sails.");
  const folder = await mkdtemp(join(tmpdir(), "archives-"));
  const path = join(folder, "eva.zip");
  await writeFile(path, await memory.exportArchive({ user_id: "eva" }));

  const checked = await memory.importArchive(await openAsBlob(path), { dry_run: true });
  const imported = await memory.importArchive((await openAsBlob(path)).stream());
  const newest = await new Response(await memory.downloadNewestExport({ user_id: "eva" })).arrayBuffer();
  await rm(folder, { recursive: true });

  assert.equal(checked.dry_run, true);
  assert.equal(imported.existing["memories"], 1);
  assert.equal(newest.byteLength, checked.size_bytes);
});

test("an archive that is not ready, or is none, is refused", async () => {
  const { id } = await memory.call("create_export", {}, { agent_id: "nobody" });
  await assert.rejects(memory.downloadExport(id), ConflictError);
  await assert.rejects(memory.downloadNewestExport({ user_id: "nobody" }), NotFoundError);
  await assert.rejects(memory.importArchive(new Blob(["PK no archive"])), UnprocessableError);
});
