// Sends calls, with retries, and reads the answers.

import { AgentMemoryError, ServiceConnectionError, ServiceTimeoutError, statusError } from "./errors.js";
import { prepare, type ArchiveStream, type Call, type Owner, type PreparedRequest } from "./requests.js";
import { Retries, type Received } from "./retries.js";

const API = "/api/v1";
/** Time to wait for the answer to a stream or an archive, which comes after all of it was stored. */
const LONG_TIMEOUT_MS = 600_000;
const LONG_TYPES = ["application/zip", "application/x-ndjson"];
const DEFAULT_BASE_URL = "http://127.0.0.1:8002";

/** Settings of a client. What is left out comes from the environment, where there is one. */
export interface ClientOptions {
  /** Default: AGENT_MEMORY_BASE_URL, else http://127.0.0.1:8002. */
  baseUrl?: string;
  /** Default: AGENT_MEMORY_API_KEY. */
  apiKey?: string;
  /** Default: AGENT_MEMORY_AGENT_ID. An empty id is not sent. */
  agentId?: string;
  /** Default: AGENT_MEMORY_USER_ID. */
  userId?: string;
  /** Times that a request is sent again. Default: 2. */
  maxRetries?: number;
  /** Milliseconds to wait for an answer, at each attempt. Default: 30,000. */
  timeoutMs?: number;
  /** Sends the requests. Default: the global `fetch`. */
  fetch?: typeof fetch;
}

/** What one call may say besides its arguments. */
export interface CallOptions {
  /** Ends the call, with its retries. */
  signal?: AbortSignal;
  /** The version that a change is made to: `etag` of what was read. */
  ifMatch?: string;
  /** What makes a write the same one, if your program repeats it later. Default: a new key for each call. */
  idempotencyKey?: string;
  /** Milliseconds to wait for an answer, at each attempt. Default: that of the client. */
  timeoutMs?: number;
}

interface AttemptOptions {
  streams?: boolean;
  signal?: AbortSignal | undefined;
  timeoutMs?: number | undefined;
}

/** An answer with its headers. */
export interface RawAnswer<A> {
  status: number;
  headers: Headers;
  /** The version of the object, as `ifMatch` takes it. Empty if it has none. */
  etag: string;
  requestId: string;
  data: A;
}

/** Sends calls for one agent and user. */
export class Sender {
  readonly baseUrl: string;
  readonly owner: Owner;
  readonly #key: string;
  readonly #maxRetries: number;
  readonly #timeoutMs: number;
  readonly #fetch: typeof fetch;

  constructor(options: ClientOptions) {
    const environ = readEnvironment();
    this.#key = readKey(options.apiKey ?? environ["AGENT_MEMORY_API_KEY"] ?? "");
    const url = (options.baseUrl ?? environ["AGENT_MEMORY_BASE_URL"] ?? DEFAULT_BASE_URL).replace(/\/+$/, "");
    this.baseUrl = url.endsWith(API) ? url : url + API;
    this.owner = {
      agent_id: options.agentId ?? environ["AGENT_MEMORY_AGENT_ID"] ?? "",
      user_id: options.userId ?? environ["AGENT_MEMORY_USER_ID"] ?? "",
    };
    this.#maxRetries = options.maxRetries ?? 2;
    this.#timeoutMs = options.timeoutMs ?? 30_000;
    this.#fetch = options.fetch ?? ((...given) => fetch(...given));
  }

  /** Return the answer to a call. Throws the error of the status if it is no success. */
  async send<A>(call: Call, options: CallOptions = {}): Promise<RawAnswer<A>> {
    const { signal, timeoutMs } = options;
    const request = prepare({ ...call, ...pickHeaders(options) }, this.owner);
    const retries = new Retries(request.isRepeatable ? this.#maxRetries : 0);
    for (;;) {
      const outcome = await this.#attempt(request, { signal, timeoutMs });
      const received = outcome instanceof ServiceConnectionError ? undefined : outcome;
      const pause = received?.response.ok ? undefined : retries.pauseAfter(received);
      if (pause !== undefined) await wait(pause, signal);
      else if (outcome instanceof ServiceConnectionError) throw outcome;
      else return readAnswer(outcome);
    }
  }

  /** Return the body of an answer while it comes. Throws the error of the status if it is no success. */
  async open(call: Call, signal?: AbortSignal): Promise<ArchiveStream> {
    const retries = new Retries(this.#maxRetries);
    for (;;) {
      const outcome = await this.#attempt(prepare(call, this.owner), { streams: true, signal });
      if (!(outcome instanceof ServiceConnectionError) && outcome.response.ok && outcome.response.body) {
        return outcome.response.body as ArchiveStream;
      }
      const pause = retries.pauseAfter(outcome instanceof ServiceConnectionError ? undefined : outcome);
      if (pause !== undefined) await wait(pause, signal);
      else if (outcome instanceof ServiceConnectionError) throw outcome;
      else throw statusError(outcome.response, outcome.text);
    }
  }

  async #attempt(
    request: PreparedRequest,
    { streams = false, signal, timeoutMs: wanted }: AttemptOptions,
  ): Promise<Received | ServiceConnectionError> {
    const isLong = streams || LONG_TYPES.includes(request.headers["Content-Type"] ?? "");
    const timeoutMs = wanted ?? (isLong ? Math.max(this.#timeoutMs, LONG_TIMEOUT_MS) : this.#timeoutMs);
    const timeout = new AbortController();
    const timer = setTimeout(() => timeout.abort(), timeoutMs);
    const init: RequestInit & { duplex?: "half" } = {
      method: request.method,
      headers: { Authorization: `Bearer ${this.#key}`, ...request.headers },
      redirect: "manual",
      signal: signal ? AbortSignal.any([signal, timeout.signal]) : timeout.signal,
    };
    if (request.body !== undefined) init.body = request.body;
    if (request.body instanceof ReadableStream) init.duplex = "half";
    try {
      const response = await this.#fetch(this.baseUrl + request.target, init);
      return { response, text: streams && response.ok ? "" : await response.text() };
    } catch (err) {
      signal?.throwIfAborted();
      if (timeout.signal.aborted) return new ServiceTimeoutError(`No answer within ${timeoutMs} ms.`, { cause: err });
      return new ServiceConnectionError(describe(err), { cause: err });
    } finally {
      clearTimeout(timer);
    }
  }
}

function pickHeaders({ ifMatch, idempotencyKey }: CallOptions): Pick<Call, "ifMatch" | "idempotencyKey"> {
  return { ...(ifMatch && { ifMatch }), ...(idempotencyKey && { idempotencyKey }) };
}

/** Return a key without the line end of the file that it comes from. Throws an error that never shows it. */
function readKey(text: string): string {
  const key = text.trim();
  if (!key) throw new AgentMemoryError("There is no key. Pass apiKey, or set AGENT_MEMORY_API_KEY.");
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw new AgentMemoryError("The key has blanks, line ends or characters that no key has. Pass the key alone.");
  }
  return key;
}

function readAnswer<A>({ response, text }: Received): RawAnswer<A> {
  if (!response.ok) throw statusError(response, text);
  return {
    status: response.status,
    headers: response.headers,
    etag: response.headers.get("ETag") ?? "",
    requestId: response.headers.get("X-Request-Id") ?? "",
    // an answer without a body is undefined, as its type says
    data: (text ? JSON.parse(text) : undefined) as A,
  };
}

/** Return the sentence of an error of `fetch`, whose cause says more than itself. */
function describe(err: unknown): string {
  if (!(err instanceof Error)) return String(err);
  return err.cause instanceof Error ? `${err.message}: ${err.cause.message}` : err.message;
}

/** Wait, unless the signal ends it. */
export function wait(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    if (signal?.aborted) stop();
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** Return the environment of the process, empty in a browser. */
function readEnvironment(): Record<string, string | undefined> {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env ?? {};
}
