// Waiting for exports and imports.

import { ServiceTimeoutError, TransferFailedError } from "./errors.js";
import { wait } from "./sender.js";
import type { Schemas } from "./types.js";

const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;

/** What is exported: the account, or what belongs to an agent or a user of it. */
export interface ExportScope {
  agent_id?: string;
  user_id?: string;
  include_vectors?: boolean;
}

/** How long to wait for an export or an import. */
export interface TransferOptions {
  /** Milliseconds to wait. Default: an hour. */
  waitMs?: number;
  /** Ends the waiting; the service goes on. */
  signal?: AbortSignal;
}

/** Return a transfer when it is completed. Throws TransferFailedError, or ServiceTimeoutError if it takes too long. */
export async function waitForTransfer<T extends Schemas["ExportAnswer"] | Schemas["ImportAnswer"]>(
  started: T,
  read: (id: string) => Promise<T>,
  { waitMs = 3_600_000, signal }: TransferOptions,
): Promise<T> {
  const until = Date.now() + waitMs;
  let pauseMs = FIRST_PAUSE_MS;
  for (let transfer = started; ; transfer = await read(transfer.id)) {
    if (transfer.status === "completed") return transfer;
    if (transfer.status === "failed") throw new TransferFailedError(transfer);
    if (Date.now() >= until) throw new ServiceTimeoutError(`${transfer.id} is ${transfer.status} after ${waitMs} ms.`);
    await wait(pauseMs, signal);
    pauseMs = Math.min(1.5 * pauseMs, MAX_PAUSE_MS);
  }
}
