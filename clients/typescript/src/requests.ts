// The requests that calls become. Nothing here sends anything.

/** An operation of the service. `query` names its query parameters if it has a body as well. */
export interface Operation {
  method: string;
  path: string;
  query?: readonly string[];
  hasBody?: boolean;
  owner?: readonly string[];
  hasKey?: boolean;
}

/** Who asks, where a call does not say so. */
export interface Owner {
  agent_id: string;
  user_id: string;
}

/** An operation with its arguments. */
export interface Call {
  operation: Operation;
  ids: Record<string, unknown>;
  fields: Record<string, unknown>;
  turns?: Turns;
  archive?: Archive;
  ifMatch?: string;
  idempotencyKey?: string;
}

/** A turn as the service takes it, and turns that may be produced while they are sent. */
export type Turn = Record<string, unknown>;
export type Turns = Iterable<Turn> | AsyncIterable<Turn>;

/** A zip. A Blob, such as `openAsBlob(path)` of Node, is sent again after a failure; a stream is not. */
export type Archive = Blob | ReadableStream<Uint8Array>;
/** A zip while it comes. Node and most browsers can iterate over it. */
export type ArchiveStream = ReadableStream<Uint8Array> & AsyncIterable<Uint8Array>;

/** A request, the same at each attempt. */
export interface PreparedRequest {
  target: string;
  method: string;
  headers: Record<string, string>;
  body?: string | Archive;
  /** False for a stream: the first attempt uses it up. */
  isRepeatable: boolean;
}

/** Return the request of a call: defaults filled in, ids encoded, with a new Idempotency-Key where one is taken. */
export function prepare(call: Call, owner: Owner): PreparedRequest {
  const { operation, turns, archive } = call;
  const query = new URLSearchParams();
  const body: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(addOwner(call, owner))) {
    // without a body all are in the query, so that the service can refuse unknown ones
    if (turns || !operation.hasBody || operation.query?.includes(name)) addParam(query, name, value);
    else body[name] = value;
  }
  const headers: Record<string, string> = {};
  if (call.ifMatch) headers["If-Match"] = call.ifMatch;
  if (operation.hasBody) headers["Content-Type"] = contentType(call);
  const isRepeatable = (!turns || Array.isArray(turns)) && !(archive instanceof ReadableStream);
  if (call.idempotencyKey) headers["Idempotency-Key"] = call.idempotencyKey;
  else if (operation.hasKey && isRepeatable) headers["Idempotency-Key"] = crypto.randomUUID();
  const found = query.toString();
  const request: PreparedRequest = {
    target: fillPath(operation.path, call.ids) + (found && `?${found}`),
    method: operation.method,
    headers,
    isRepeatable,
  };
  if (archive) request.body = archive;
  else if (turns) request.body = Array.isArray(turns) ? turns.map(toLine).join("") : toStream(turns);
  else if (operation.hasBody) request.body = JSON.stringify(body);
  return request;
}

function contentType({ turns, archive }: Call): string {
  if (archive) return "application/zip";
  return turns ? "application/x-ndjson" : "application/json";
}

/** Return the fields with the client's own agent and user, where the operation takes them and none are given. */
function addOwner({ operation, fields }: Call, owner: Owner): Record<string, unknown> {
  const filled = { ...fields };
  for (const name of operation.owner ?? []) {
    const own = name === "agent_id" ? owner.agent_id : owner.user_id;
    // an id in the path is not repeated
    if (filled[name] === undefined && !operation.path.includes(`{${name}}`)) filled[name] = own;
    if (filled[name] === null || filled[name] === "" || filled[name] === undefined) delete filled[name];
  }
  return filled;
}

function fillPath(template: string, ids: Record<string, unknown>): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => encodeSegment(ids[name], name));
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

function encodeSegment(id: unknown, name: string): string {
  if (id === undefined || id === null || id === "") throw new TypeError(`The id ${name} must not be empty.`);
  const text = String(id);
  // the former path of keyed values takes any other text, and would delete the value of that key
  if (name === "memory_id" && !UUID.test(text)) throw new TypeError(`${text} is not the id of a memory, which is a UUID.`);
  // they would be taken for steps of the path, also when they are encoded
  if (text === "." || text === "..") throw new TypeError(`The id ${name} must not be ${text}: URLs cannot name it.`);
  return encodeURIComponent(text);
}

/** Add a query parameter: lists as commas, nothing for null. */
function addParam(query: URLSearchParams, name: string, value: unknown): void {
  if (value === undefined || value === null) return;
  query.set(name, value instanceof Date ? value.toISOString() : Array.isArray(value) ? value.join(",") : String(value));
}

function toLine(turn: Turn): string {
  return `${JSON.stringify(turn)}\n`;
}

function toStream(turns: Turns): ReadableStream<Uint8Array> {
  const iterator = Symbol.asyncIterator in turns ? turns[Symbol.asyncIterator]() : turns[Symbol.iterator]();
  const encoder = new TextEncoder();
  return new ReadableStream({
    async pull(controller) {
      const next = await iterator.next();
      if (next.done) controller.close();
      else controller.enqueue(encoder.encode(toLine(next.value)));
    },
    async cancel() {
      await iterator.return?.();
    },
  });
}
