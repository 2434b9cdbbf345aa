// The client: what agents do all day under short names, and every operation of the service by its id.

import { OPERATIONS } from "./operations.js";
import { Pages, readCursor } from "./pages.js";
import type { Archive, ArchiveStream, Call, Turn, Turns } from "./requests.js";
import { Sender, type CallOptions, type ClientOptions, type RawAnswer } from "./sender.js";
import { waitForTransfer, type ExportScope, type TransferOptions } from "./transfers.js";
import type { Answer, Fields, Item, ListId, OperationId, Options, PathIds, Schemas } from "./types.js";

/** A page as the service answers it. */
interface AnsweredPage<I> {
  results: I[];
  next: string | null;
}

/** A client of the service for one agent and user. */
export class Client {
  readonly #sender: Sender;

  constructor(options: ClientOptions = {}) {
    this.#sender = new Sender(options);
  }

  /** Call an operation by its id in the OpenAPI document. Ids of the path come before the fields. */
  async call<O extends OperationId>(
    operation: O,
    ids: PathIds<O>,
    fields?: Fields<O>,
    options?: CallOptions,
  ): Promise<Answer<O>> {
    return (await this.callRaw(operation, ids, fields, options)).data;
  }

  /** Call an operation and return its answer with status, headers and version. */
  async callRaw<O extends OperationId>(
    operation: O,
    ids: PathIds<O>,
    fields?: Fields<O>,
    options: CallOptions = {},
  ): Promise<RawAnswer<Answer<O>>> {
    if (!Object.hasOwn(OPERATIONS, operation)) throw new TypeError(`${operation} is not an operation of the service.`);
    const call: Call = { operation: OPERATIONS[operation], ids: { ...(ids as object) }, fields: { ...fields } };
    return this.#sender.send(call, options);
  }

  /** Call an operation that answers a list. */
  list<O extends ListId>(operation: O, ids: PathIds<O>, filters?: Fields<O>, options?: CallOptions): Pages<Item<O>> {
    return new Pages(async (cursor) => {
      const fields = { ...filters, ...(cursor && { cursor }) } as Fields<O>;
      const page = (await this.call(operation, ids, fields, options)) as unknown as AnsweredPage<Item<O>>;
      return { results: page.results, next: readCursor(page.next) };
    });
  }

  /** Remember a text as it is. */
  remember(text: string, options: Options<"create_memory", "text" | "messages" | "infer"> = {}, call?: CallOptions) {
    return this.call("create_memory", {}, { ...options, text }, call) as Promise<Schemas["MemoryAnswer"]>;
  }

  /** Store a text or messages as turns and have knowledge extracted from them. */
  infer(
    said: string | Turn[],
    options: Options<"create_memory", "text" | "messages" | "infer"> = {},
    call?: CallOptions,
  ) {
    const content = typeof said === "string" ? { text: said } : { messages: said };
    const fields = { ...options, ...content, infer: true } as Fields<"create_memory">;
    return this.call("create_memory", {}, fields, call) as Promise<Schemas["InferenceAnswer"]>;
  }

  /** List memories, latest first. */
  memories(filters: Fields<"list_memories"> = {}, call?: CallOptions) {
    return this.list("list_memories", {}, filters, call);
  }

  /** Forget a memory. */
  forget(memoryId: string, options: Fields<"delete_memory"> = {}, call?: CallOptions) {
    return this.call("delete_memory", { memory_id: memoryId }, options, call);
  }

  /** Forget all memories that the filters find, or with `dry_run` count them. */
  forgetAll(filters: Fields<"delete_memories"> & { dry_run: boolean }, call?: CallOptions) {
    return this.call("delete_memories", {}, filters, call);
  }

  /** Recall what bears on a question. */
  recall(query: string, options: Options<"recall", "query"> = {}, call?: CallOptions) {
    return this.call("recall", {}, { ...options, query }, call);
  }

  /** Find memories of all kinds with their own fields. */
  search(query: string, options: Options<"search_memories", "query"> = {}, call?: CallOptions) {
    return this.call("search_memories", {}, { ...options, query }, call);
  }

  /** Build the text that goes into the next prompt. */
  context(
    conversationId: string,
    query = "",
    options: Options<"build_context", "conversation_id" | "query"> = {},
    call?: CallOptions,
  ) {
    const fields = { ...options, conversation_id: conversationId, ...(query && { query }) };
    return this.call("build_context", {}, fields, call);
  }

  /** Return what a successor must know to go on. */
  resume(options: Fields<"resume"> = {}, call?: CallOptions) {
    return this.call("resume", {}, options, call);
  }

  /** Append turns to a conversation, which is created if it is new. */
  addTurns(
    conversationId: string,
    turns: Schemas["NewTurnsRequest"]["turns"],
    options: Options<"add_turns", "turns"> = {},
    call?: CallOptions,
  ) {
    const fields = { ...options, turns } as Fields<"add_turns">;
    return this.call("add_turns", { conversation_id: conversationId }, fields, call);
  }

  /**
   * Append any number of turns while they are produced: all are stored, or none.
   *
   * Arrays are sent again after a failure, with the same Idempotency-Key, so that they are stored once. Other iterables
   * are used up and are sent once.
   */
  async streamTurns(
    conversationId: string,
    turns: Turns,
    options: Options<"add_turns", "turns"> = {},
    call: CallOptions = {},
  ): Promise<Schemas["PlacedTurns"]> {
    const ids = { conversation_id: conversationId };
    const stream = { operation: OPERATIONS.add_turns, ids, fields: { ...options }, turns };
    return (await this.#sender.send<Schemas["PlacedTurns"]>(stream, call)).data;
  }

  /** List the turns of a conversation. */
  turns(conversationId: string, filters: Fields<"list_turns"> = {}, call?: CallOptions) {
    return this.list("list_turns", { conversation_id: conversationId }, filters, call);
  }

  /** End a conversation: it is summarized, and its live session is cleared. */
  end(conversationId: string, options: Fields<"end_conversation"> = {}, call?: CallOptions) {
    return this.call("end_conversation", { conversation_id: conversationId }, options, call);
  }

  /** Learn a fact. */
  learn(claim: string, options: Options<"create_fact", "claim"> = {}, call?: CallOptions) {
    return this.call("create_fact", {}, { ...options, claim }, call);
  }

  /** List the facts that are believed. */
  facts(filters: Fields<"list_facts"> = {}, call?: CallOptions) {
    return this.list("list_facts", {}, filters, call);
  }

  /** Open a goal. */
  addGoal(description: string, options: Options<"create_goal", "description"> = {}, call?: CallOptions) {
    return this.call("create_goal", {}, { ...options, description }, call);
  }

  /** List goals. */
  goals(filters: Fields<"list_goals"> = {}, call?: CallOptions) {
    return this.list("list_goals", {}, filters, call);
  }

  /** Complete a goal. */
  complete(goalId: string, result = "", options: Options<"complete_goal", "result"> = {}, call?: CallOptions) {
    return this.call("complete_goal", { goal_id: goalId }, { ...options, ...(result && { result }) }, call);
  }

  /** Record the call of a tool. */
  recordTool(
    conversationId: string,
    toolName: string,
    options: Options<"record_tool_invocation", "conversation_id" | "tool_name"> = {},
    call?: CallOptions,
  ) {
    const fields = { ...options, conversation_id: conversationId, tool_name: toolName };
    return this.call("record_tool_invocation", {}, fields as Fields<"record_tool_invocation">, call);
  }

  /**
   * Export the account, or what belongs to an agent or a user of it, and return the zip while it comes.
   *
   * The client's own agent and user do not limit it. In Node, `writeFile(path, stream)` stores it in flat memory.
   */
  async exportArchive(scope: ExportScope = {}, options: TransferOptions = {}): Promise<ArchiveStream> {
    const { signal } = options;
    const started = await this.call("create_export", {}, scope as Fields<"create_export">, { ...(signal && { signal }) });
    const done = await waitForTransfer(started, (id) => this.call("get_export", { export_id: id }), options);
    return this.downloadExport(done.id, { ...(signal && { signal }) });
  }

  /** Return the zip of an export while it comes. Throws ConflictError until the export is completed. */
  downloadExport(exportId: string, { signal }: CallOptions = {}): Promise<ArchiveStream> {
    const call = { operation: OPERATIONS.download_export, ids: { export_id: exportId }, fields: {} };
    return this.#sender.open(call, signal);
  }

  /** Return the newest zip of the account, or of an agent or a user of it, while it comes. */
  downloadNewestExport(scope: ExportScope = {}, { signal }: CallOptions = {}): Promise<ArchiveStream> {
    return this.#sender.open({ operation: OPERATIONS.download_newest_export, ids: {}, fields: { ...scope } }, signal);
  }

  /** Start the import of a zip: `importArchive` waits for it. */
  async createImport(
    archive: Archive,
    fields: { dry_run?: boolean } = {},
    options: CallOptions = {},
  ): Promise<Schemas["ImportAnswer"]> {
    const call = { operation: OPERATIONS.create_import, ids: {}, fields, archive };
    return (await this.#sender.send<Schemas["ImportAnswer"]>(call, options)).data;
  }

  /** Import a zip into the account, or with `dry_run` only check it. In Node, `openAsBlob(path)` reads a file. */
  async importArchive(
    archive: Archive,
    fields: { dry_run?: boolean } = {},
    options: TransferOptions = {},
  ): Promise<Schemas["ImportAnswer"]> {
    const { signal } = options;
    const started = await this.createImport(archive, fields, { ...(signal && { signal }) });
    return waitForTransfer(started, (id) => this.call("get_import", { import_id: id }), options);
  }
}
