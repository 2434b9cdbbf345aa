// Types of calls, derived from the OpenAPI document.

import type { components, operations } from "./schema.js";

/** The objects of the OpenAPI document by name: `Schemas["StoredGoal"]`. */
export type Schemas = components["schemas"];
/** The id of an operation: `"create_goal"`. */
export type OperationId = Exclude<keyof operations, ArchiveId>;
/** Operations that take or answer an archive, which have methods of their own. */
type ArchiveId = "create_import" | "download_export" | "download_newest_export";

type Taken<O extends OperationId> = operations[O] extends { parameters: infer P } ? P : never;
type QueryOf<P> = P extends { query?: infer Q } ? (Exclude<Q, undefined> extends never ? {} : Exclude<Q, undefined>) : {};
type BodyOf<O> = O extends { requestBody?: infer R }
  ? Exclude<R, undefined> extends { content: { "application/json": infer B } }
    ? B
    : {}
  : {};
type AnswerOf<R> = R extends { content: { "application/json": infer A } } ? A : never;

/** Ids in the path of an operation: `{ goal_id: string }`. */
export type PathIds<O extends OperationId> = Taken<O> extends { path: infer I } ? I : Record<string, never>;
/** Fields of the body and of the query. `agent_id` and `user_id` may be null: none is sent then. */
export type Fields<O extends OperationId> = WithOwner<BodyOf<operations[O]> & QueryOf<Taken<O>>>;
type WithOwner<F> = Omit<F, "agent_id" | "user_id"> & {
  [N in Extract<keyof F, "agent_id" | "user_id">]?: F[N] | null;
};
/** The answer of success; undefined if there is nothing in it. */
export type Answer<O extends OperationId> = operations[O] extends { responses: infer R }
  ? [AnswerOf<R[keyof R]>] extends [never]
    ? undefined
    : AnswerOf<R[keyof R]>
  : never;
/** An item of a list that comes in pages. */
export type Item<O extends OperationId> = Answer<O> extends { results: (infer I)[]; next: string | null } ? I : never;
/** The operations that answer pages. */
export type ListId = { [O in OperationId]: [Item<O>] extends [never] ? never : O }[OperationId];
/** Fields without those that a verb takes as its first arguments. */
export type Options<O extends OperationId, N extends string = never> = Omit<Fields<O>, N>;
