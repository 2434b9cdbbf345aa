// When a request is sent again, and after how long.

import { readProblem } from "./errors.js";

const RETRIED_STATUSES = new Set([429, 502, 503, 504]);
const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 8_000;
const MAX_RETRY_AFTER_MS = 60_000;

/** An answer whose body was read. */
export interface Received {
  response: Response;
  text: string;
}

/** The retries that one call has left. */
export class Retries {
  #left: number;
  #pauseMs = FIRST_PAUSE_MS;

  constructor(maxRetries: number) {
    this.#left = maxRetries;
  }

  /**
   * Return the milliseconds to wait before the next attempt, or undefined if this was the last one.
   *
   * `received` is undefined if there was no answer. A Retry-After is a lower bound; longer than a minute is not waited.
   */
  pauseAfter(received: Received | undefined): number | undefined {
    if (this.#left <= 0 || (received && !isTemporary(received))) return undefined;
    this.#left -= 1;
    const pause = this.#pauseMs * (0.5 + Math.random() / 2);
    this.#pauseMs = Math.min(2 * this.#pauseMs, MAX_PAUSE_MS);
    const asked = received ? readRetryAfter(received.response.headers) : 0;
    return asked > MAX_RETRY_AFTER_MS ? undefined : asked + pause;
  }
}

/** Return true if the same request may succeed later. */
function isTemporary({ response, text }: Received): boolean {
  // an attempt whose answer was lost is still running
  if (response.status === 409) return readProblem(text).code === "request_in_progress";
  return RETRIED_STATUSES.has(response.status);
}

/** Return the milliseconds of Retry-After, which may also be a date; 0 without one. */
export function readRetryAfter(headers: Headers): number {
  const text = headers.get("Retry-After") ?? "";
  const milliseconds = /^-?[\d.]+$/.test(text) ? 1_000 * Number(text) : Date.parse(text) - Date.now();
  return Math.max(0, milliseconds || 0);
}
