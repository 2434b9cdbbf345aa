// Client of the agent memory service.
//
// `Client` has verbs for what agents do all day (`remember`, `recall`, `context`, `resume`, `addTurns`, …) and `call` for
// every operation of the service's OpenAPI document. Errors are in `errors.ts`.

export { Client } from "./client.js";
export * from "./errors.js";
export { Pages, type Page } from "./pages.js";
export type { Archive, ArchiveStream, Turn, Turns } from "./requests.js";
export type { ExportScope, TransferOptions } from "./transfers.js";
export type { CallOptions, ClientOptions, RawAnswer } from "./sender.js";
export type { Answer, Fields, Item, ListId, OperationId, PathIds, Schemas } from "./types.js";
