/**
 * HTTP client of a scrubjay service: one method per verb, with the JSON of the service.
 *
 *     const memory = new Scrubjay({ url: "https://memory.example.com", key, scope: "acme/alice" });
 *     await memory.retain({ content: "Alice prefers green tea" });
 *     const { hits } = await memory.recall({ query: "What does Alice drink?" });
 *
 * It needs nothing but `fetch`, so it also runs in Deno, Bun, workers and browsers.
 */
import { OPERATIONS } from "./operations.js";

const MILLISECONDS = 60_000;
const MEMORIES = "X-Scrubjay-Memories";

/** An answer that is an error: `code` is stable, `hint` says what to do. */
export class ScrubjayError extends Error {
  constructor(message, { code, hint = null, status = null, requestId = null, cause } = {}) {
    super(message, { cause });
    Object.assign(this, { name: "ScrubjayError", code, hint, status, requestId });
  }
}

/** One key on one service; every call may name another scope. */
export class Scrubjay {
  #url;
  #headers;
  #milliseconds;
  #fetch;

  constructor({ url, key, scope, milliseconds = MILLISECONDS, fetch = globalThis.fetch }) {
    if (!/^https?:\/\//.test(url ?? "")) {
      throw new ScrubjayError("The address of the service is missing or no http(s) URL.", {
        code: "invalid",
        hint: 'Write it like new Scrubjay({ url: "http://127.0.0.1:8377", key }).',
      });
    }
    this.#url = url.replace(/\/+$/, "");
    this.#headers = withoutEmpty({
      Authorization: key && `Bearer ${key}`,
      "X-Scrubjay-Scope": scope,
    });
    this.#milliseconds = milliseconds;
    this.#fetch = fetch;
  }

  static {
    for (const [name, operation] of Object.entries(OPERATIONS)) {
      this.prototype[name] = function (request = {}, options = {}) {
        return this.#call({ name, ...operation }, request, options);
      };
    }
  }

  /** Every item of a listing verb, page after page: `for await (const one of memory.each("browse"))`. */
  async *each(name, request = {}, options = {}) {
    for (let cursor; cursor !== null; ) {
      const page = await this[name](withoutEmpty({ ...request, cursor }), options);
      yield* page.data;
      cursor = page.next_cursor ?? null;
    }
  }

  async #call(operation, request, options) {
    const { url, init } = this.#request(operation, request, options);
    const response = await this.#ask(operation, url, init, options.signal);
    if (!response.ok) throw await problem(response);
    if (operation.file) {
      const content = new Uint8Array(await response.arrayBuffer());
      return { content, memories: Number(response.headers.get(MEMORIES)) };
    }
    return response.json();
  }

  #request({ name, method, path, inQuery, conditional, keyed }, request, options) {
    const left = { ...request };
    const filled = path.replace(/\{(\w+)\}/g, (_, field) => {
      if (left[field] === undefined) {
        throw new ScrubjayError(`${name} needs the field ${field}.`, { code: "invalid" });
      }
      const value = encodeURIComponent(left[field]);
      delete left[field];
      return value;
    });
    const headers = withoutEmpty({
      ...this.#headers,
      "X-Scrubjay-Scope": options.scope ?? this.#headers["X-Scrubjay-Scope"],
      "If-Match": conditional ? (options.ifMatch ?? "*") : undefined,
      // Chosen once for both tries, so that a repeat changes nothing.
      "Idempotency-Key": keyed ? (options.idempotencyKey ?? crypto.randomUUID()) : undefined,
      "Content-Type": inQuery ? undefined : "application/json",
    });
    const url = `${this.#url}${filled}${inQuery ? query(left) : ""}`;
    return { url, init: { method, headers, body: inQuery ? undefined : JSON.stringify(left) } };
  }

  /** Send a request; one retry after a broken connection, if that cannot write twice. */
  async #ask({ repeatable }, url, init, signal) {
    for (let tries = repeatable ? 2 : 1; ; tries -= 1) {
      const late = AbortSignal.timeout(this.#milliseconds);
      try {
        return await this.#fetch(url, {
          ...init,
          signal: signal ? AbortSignal.any([signal, late]) : late,
        });
      } catch (cause) {
        if (signal?.aborted) throw cause;
        if (late.aborted) {
          throw new ScrubjayError("The service did not answer in time.", {
            code: "busy",
            hint: "A write may have been done all the same: read before you repeat it.",
            cause,
          });
        }
        if (tries > 1) continue;
        throw new ScrubjayError(`The service at ${new URL(this.#url).host} cannot be reached.`, {
          code: "store",
          hint: "Check the address, and that it runs.",
          cause,
        });
      }
    }
  }
}

function query(fields) {
  const pairs = Object.entries(withoutEmpty(fields)).flatMap(([name, value]) =>
    Array.isArray(value) ? value.map((one) => [name, plain(one)]) : [[name, plain(value)]],
  );
  return pairs.length ? `?${new URLSearchParams(pairs)}` : "";
}

function plain(value) {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function withoutEmpty(fields) {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(given);
}

async function problem(response) {
  const said = await response.json().catch(() => ({}));
  return new ScrubjayError(said.detail ?? "The service refused the request without a reason.", {
    code: said.code ?? "store",
    hint: said.hint,
    status: response.status,
    requestId: response.headers.get("X-Request-Id"),
  });
}
