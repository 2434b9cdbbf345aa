// The client when the service or the way to it fails.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  AgentMemoryError,
  BadRequestError,
  Client,
  ServerError,
  ServiceConnectionError,
  ServiceTimeoutError,
  UnavailableError,
} from "../src/index.js";
import { readRetryAfter } from "../src/retries.js";
import { serve, type Step } from "./scripted.js";

const UNAVAILABLE: Step = {
  status: 503,
  body: { code: "unavailable", request_id: "r-1", detail: "PostgreSQL is down." },
};
const GOAL: Step = { status: 201, body: { id: "g-1", description: "book", newer_field: { a: 1 } } };

for (const failure of [{ status: 429 }, { status: 502 }, UNAVAILABLE, { status: 504 }, "drop"] as Step[]) {
  const name = typeof failure === "string" ? failure : failure.status;
  test(`a request is sent again with the same key after ${name}`, async (context) => {
    const { url, received } = await serve(context, failure, GOAL);

    const goal = await new Client({ baseUrl: url, apiKey: "key" }).addGoal("book");

    assert.equal(goal.id, "g-1");
    assert.deepEqual(received[0], received[1]);
    assert.equal(String(received[0]?.headers["idempotency-key"]).length, 36);
  });
}

test("the last of three failures is thrown with what the service said", async (context) => {
  const { url, received } = await serve(context, UNAVAILABLE, UNAVAILABLE, UNAVAILABLE);

  await assert.rejects(new Client({ baseUrl: url, apiKey: "key" }).addGoal("book"), (err) => {
    assert.ok(err instanceof UnavailableError && err instanceof ServerError && err instanceof AgentMemoryError);
    assert.deepEqual([err.name, err.status, err.code, err.requestId], ["UnavailableError", 503, "unavailable", "r-1"]);
    assert.match(err.message, /503 unavailable: PostgreSQL is down/);
    return true;
  });
  assert.equal(received.length, 3);
});

test("Retry-After is waited for, but not for minutes", async (context) => {
  const { url } = await serve(context, { status: 429, headers: { "Retry-After": "1" } }, GOAL);
  const begun = performance.now();
  await new Client({ baseUrl: url, apiKey: "key" }).addGoal("book");
  assert.ok(performance.now() - begun >= 1_000);

  const busy = await serve(context, { status: 503, headers: { "Retry-After": "600" } });
  await assert.rejects(new Client({ baseUrl: busy.url, apiKey: "key" }).addGoal("book"), UnavailableError);
  assert.equal(busy.received.length, 1);
});

test("Retry-After is seconds or a date", () => {
  const past = new Date(0).toUTCString();
  for (const [text, expected] of [["", 0], ["soon", 0], ["-3", 0], ["2.5", 2_500], [past, 0]] as const) {
    assert.equal(readRetryAfter(new Headers({ "Retry-After": text })), expected);
  }
});

test("a write that is still running is asked for again, a conflict is not", async (context) => {
  const running = await serve(context, { status: 409, body: { code: "request_in_progress" } }, GOAL);
  assert.equal((await new Client({ baseUrl: running.url, apiKey: "key" }).addGoal("book")).id, "g-1");

  const refused = await serve(context, { status: 400, body: { errors: { description: ["x"] } } });
  await assert.rejects(new Client({ baseUrl: refused.url, apiKey: "key" }).addGoal("book"), (err) => {
    return err instanceof BadRequestError && err.message.includes("description");
  });
  assert.equal(refused.received.length, 1);
});

test("an answer of a proxy that is no problem document is an error too", async (context) => {
  const { url } = await serve(context, { status: 500, body: "<html>" });

  await assert.rejects(new Client({ baseUrl: url, apiKey: "key" }).addGoal("book"), (err) => {
    return err instanceof ServerError && err.status === 500 && err.code === "";
  });
});

test("a service that hangs is a timeout, and one that is not there a connection error", async (context) => {
  const { url } = await serve(context, "hang");
  const options = { apiKey: "key", maxRetries: 0 };
  await assert.rejects(new Client({ ...options, baseUrl: url, timeoutMs: 100 }).addGoal("book"), ServiceTimeoutError);

  const gone = new Client({ ...options, baseUrl: "http://127.0.0.1:1" });
  await assert.rejects(gone.addGoal("book"), (err) => {
    return err instanceof ServiceConnectionError && !(err instanceof ServiceTimeoutError);
  });
});

test("the caller's signal ends a call, also between attempts", async (context) => {
  const { url, received } = await serve(context, { status: 503, headers: { "Retry-After": "30" } });
  const stop = new AbortController();
  setTimeout(() => stop.abort(new Error("enough")), 200);

  const call = new Client({ baseUrl: url, apiKey: "key" }).call("list_agents", {}, {}, { signal: stop.signal });

  await assert.rejects(call, /enough/);
  assert.equal(received.length, 1);
});

test("verbs and lists take the signal, the time and the key of a call", async (context) => {
  const { url, received } = await serve(context, { status: 503, headers: { "Retry-After": "30" } }, "hang", GOAL);
  const client = new Client({ baseUrl: url, apiKey: "key", maxRetries: 1 });
  const stop = new AbortController();
  setTimeout(() => stop.abort(new Error("enough")), 200);
  await assert.rejects(client.recall("figs", {}, { signal: stop.signal }), /enough/);
  await assert.rejects(client.goals({}, { signal: AbortSignal.abort(new Error("at once")) }).toArray(), /at once/);
  const hasty = new Client({ baseUrl: url, apiKey: "key", maxRetries: 0 });
  await assert.rejects(hasty.recall("figs", {}, { timeoutMs: 100 }), ServiceTimeoutError);

  await client.addGoal("book", {}, { idempotencyKey: "job-7" });

  assert.deepEqual(received.at(-1)?.headers["idempotency-key"], "job-7");
});

test("no items are wanted: none are asked for", async () => {
  assert.deepEqual(await new Client({ baseUrl: "http://127.0.0.1:1", apiKey: "key" }).goals().toArray(0), []);
});

test("an operation that the service does not have is named", async () => {
  const client = new Client({ baseUrl: "http://127.0.0.1:1", apiKey: "key" });

  for (const name of ["nosuch", "toString"]) {
    await assert.rejects(client.call(name as "list_agents", {}), new RegExp(`${name} is not an operation`));
  }
});

test("a stream is sent once, an array again in full", async (context) => {
  const turns = [0, 1, 2].map((number) => ({ role: "user", content: String(number) }));
  const streamed = await serve(context, UNAVAILABLE);
  const client = new Client({ baseUrl: streamed.url, apiKey: "key" });
  await assert.rejects(client.streamTurns("trip", new Set(turns)), UnavailableError);
  assert.deepEqual([streamed.received.length, streamed.received[0]?.headers["idempotency-key"]], [1, undefined]);
  assert.equal(streamed.received[0]?.body.split("\n").length, 4);

  const repeated = await serve(context, UNAVAILABLE, { status: 201, body: { turns: [] } });
  await new Client({ baseUrl: repeated.url, apiKey: "key" }).streamTurns("trip", turns);
  assert.deepEqual(repeated.received.map((each) => each.body.split("\n").length), [4, 4]);
  const [first, second] = repeated.received.map((each) => each.headers["idempotency-key"]);
  assert.equal(first?.length, 36);
  assert.equal(first, second);
});

test("the client's agent and user are sent where a call takes them and names none", async (context) => {
  const { url, received } = await serve(context, GOAL, GOAL, GOAL, GOAL);
  const client = new Client({ baseUrl: url, apiKey: "key", agentId: "assistant", userId: "ana" });

  await client.addGoal("book");
  await client.addGoal("book", { agent_id: "other", user_id: null });
  await client.call("get_goal", { goal_id: "a/b" });
  await client.call("get_agent", { agent_id: "assistant" });

  const bodies = received.slice(0, 2).map((each) => JSON.parse(each.body));
  assert.deepEqual(bodies[0], { description: "book", agent_id: "assistant", user_id: "ana" });
  assert.deepEqual(bodies[1], { description: "book", agent_id: "other" });
  assert.equal(received[2]?.line, "GET /api/v1/goals/a%2Fb?agent_id=assistant&user_id=ana");
  assert.equal(received[3]?.line, "GET /api/v1/agents/assistant");
  await assert.rejects(client.call("get_goal", { goal_id: "" }), TypeError);
  await assert.rejects(client.forget("colour"), TypeError);
});

test("a key that no header takes is refused and not shown", () => {
  for (const apiKey of ["mem_secret\nx", "mem_sec ret", "mem_secr\u00e9t"]) {
    assert.throws(
      () => new Client({ apiKey }),
      (err) => err instanceof AgentMemoryError && /Pass the key alone/.test(err.message) && !err.message.includes("mem_"),
    );
  }
});
