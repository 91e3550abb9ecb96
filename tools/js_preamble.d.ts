import type * as t from "./schemas.js";

export type * from "./schemas.js";

export interface Settings {
  /** The address of the service. */
  url: string;
  /** The API key, or the token of an issuer. */
  key?: string;
  /** The scope of calls that name none; without it, the one that the key is for. */
  scope?: string;
  /** How long an answer may take. */
  milliseconds?: number;
  /** Another fetch, such as one with a proxy. */
  fetch?: typeof globalThis.fetch;
}

export interface Options {
  /** The scope of this call. */
  scope?: string;
  /** The ETag a memory had when it was read; the default overwrites whatever is there. */
  ifMatch?: string;
  /** The key under which a repeat of this write changes nothing; the default is a new one. */
  idempotencyKey?: string;
  /** Stops the call. */
  signal?: AbortSignal;
}

/** An answer that is an error: `code` is stable, `hint` says what to do. */
export class ScrubjayError extends Error {
  constructor(
    message: string,
    facts?: {
      code?: string;
      hint?: string | null;
      status?: number | null;
      requestId?: string | null;
      cause?: unknown;
    },
  );
  readonly code: string;
  readonly hint: string | null;
  readonly status: number | null;
  readonly requestId: string | null;
}
