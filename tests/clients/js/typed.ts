// Compiled, not run: what the types accept, and what they refuse.
import { Scrubjay, ScrubjayError, type Hit, type Memory } from "scrubjay";

const memory = new Scrubjay({ url: "http://127.0.0.1:8377", key: "key", scope: "acme/alice" });
const { hits } = await memory.recall({ query: "tea", limit: 3, kinds: ["fact"] });
const first: Hit | undefined = hits[0];
export const said: string = first?.memory.content ?? "";
for await (const one of memory.each("browse", { tags: ["diary"] })) {
  const kept: Memory = one;
  await memory.amend({ id: kept.id, pinned: true }, { ifMatch: "*" });
}
export function codeOf(error: unknown): string | null {
  return error instanceof ScrubjayError ? error.code : null;
}

// @ts-expect-error: a recall needs its question
await memory.recall({ limit: 3 });
// @ts-expect-error: no such kind
await memory.retain({ content: "tea", kind: "prefrence" });
// @ts-expect-error: no such field
await memory.retain({ contents: "tea" });
// @ts-expect-error: no such verb
await memory.remember({ content: "tea" });
// @ts-expect-error: a recall is no listing
memory.each("recall", { query: "tea" });
