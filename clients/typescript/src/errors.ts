// What can go wrong.
//
// AgentMemoryError
// ├── ServiceConnectionError         no answer: refused, reset, unreachable
// │   └── ServiceTimeoutError        no answer in time
// ├── TransferFailedError            an export or an import that the service gave up, with `transfer`
// └── StatusError                    an answer with `status`, `code`, `detail`, `errors`, `requestId`
//     ├── BadRequestError            400
//     ├── AuthenticationError        401
//     ├── PermissionDeniedError      403
//     ├── NotFoundError              404
//     ├── ConflictError              409
//     ├── PreconditionFailedError    412: somebody else changed the object first
//     ├── PayloadTooLargeError       413
//     ├── UnsupportedMediaTypeError  415
//     ├── UnprocessableError         422
//     ├── RateLimitError             429
//     └── ServerError                5xx
//         └── UnavailableError       503

import type { Schemas } from "./types.js";

/** Any failure of a call. */
export class AgentMemoryError extends Error {
  override get name(): string {
    return this.constructor.name;
  }
}

/** The service could not be reached, or hung up. */
export class ServiceConnectionError extends AgentMemoryError {}

/** The service did not answer in time. */
export class ServiceTimeoutError extends ServiceConnectionError {}

/** The service gave up an export, or refused an archive. `transfer` is what it answers of it. */
export class TransferFailedError extends AgentMemoryError {
  readonly transfer: Schemas["ExportAnswer"] | Schemas["ImportAnswer"];

  constructor(transfer: Schemas["ExportAnswer"] | Schemas["ImportAnswer"]) {
    super(transfer.error);
    this.transfer = transfer;
  }
}

/** What the service says about a failure: RFC 9457. */
export interface Problem {
  code?: string;
  detail?: string;
  errors?: Record<string, unknown>;
  request_id?: string;
}

/** The service refused the request. `code` is a documented error code, `errors` the messages by field. */
export class StatusError extends AgentMemoryError {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly errors: Record<string, unknown>;
  readonly requestId: string;
  readonly headers: Headers;

  constructor(response: Response, text: string) {
    const problem = readProblem(text);
    const code = problem.code ?? "";
    const fields = Object.entries(problem.errors ?? {}).map(([name, each]) => `; ${name}: ${JSON.stringify(each)}`);
    super(`${response.status} ${code || response.statusText}: ${problem.detail ?? ""}${fields.join("")}`);
    this.status = response.status;
    this.code = code;
    this.detail = problem.detail ?? "";
    this.errors = problem.errors ?? {};
    this.requestId = problem.request_id ?? response.headers.get("X-Request-Id") ?? "";
    this.headers = response.headers;
  }
}

/** 400: the shape of the request. `errors` says what is wrong with which field. */
export class BadRequestError extends StatusError {}
/** 401: there is no valid key. */
export class AuthenticationError extends StatusError {}
/** 403: the key may not do this. */
export class PermissionDeniedError extends StatusError {}
/** 404: it does not exist, or belongs to somebody else. */
export class NotFoundError extends StatusError {}
/** 409: it contradicts what is stored. */
export class ConflictError extends StatusError {}
/** 412: the object was changed since it was read. Read it again, and repeat the change. */
export class PreconditionFailedError extends StatusError {}
/** 413: the body is too large. */
export class PayloadTooLargeError extends StatusError {}
/** 415: the body is not of a type that the operation takes. */
export class UnsupportedMediaTypeError extends StatusError {}
/** 422: well-formed, but what is stored refuses it. */
export class UnprocessableError extends StatusError {}
/** 429: too many requests, also after the retries. */
export class RateLimitError extends StatusError {}
/** 5xx: the service failed. */
export class ServerError extends StatusError {}
/** 503: something that the service needs is down, also after the retries. */
export class UnavailableError extends ServerError {}

const BY_STATUS: Record<number, typeof StatusError> = {
  400: BadRequestError,
  401: AuthenticationError,
  403: PermissionDeniedError,
  404: NotFoundError,
  409: ConflictError,
  412: PreconditionFailedError,
  413: PayloadTooLargeError,
  415: UnsupportedMediaTypeError,
  422: UnprocessableError,
  429: RateLimitError,
  503: UnavailableError,
};

/** Return the error for an answer that is no success. */
export function statusError(response: Response, text: string): StatusError {
  const kind = BY_STATUS[response.status] ?? (response.status >= 500 ? ServerError : StatusError);
  return new kind(response, text);
}

/** Return the problem document of an answer, empty if a proxy answered something else. */
export function readProblem(text: string): Problem {
  try {
    const problem: unknown = JSON.parse(text);
    return typeof problem === "object" && problem !== null && !Array.isArray(problem) ? problem : {};
  } catch {
    return {};
  }
}
