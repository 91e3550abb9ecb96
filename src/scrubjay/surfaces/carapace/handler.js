/**
 * The plugin inside of Carapace's core: hands every call to `scrubjay carapace serve`, over one
 * connection, and starts that process when none answers. It depends on nothing but Node.
 *
 *   SCRUBJAY_COMMAND          the command line of scrubjay (default: scrubjay)
 *   SCRUBJAY_CARAPACE_SOCKET  the socket (default: in $XDG_RUNTIME_DIR, else a private folder)
 *   SCRUBJAY_CARAPACE_CONFIG  a JSON file with the keys of config_schema
 */
import { spawn } from "node:child_process";
import { lstatSync, mkdirSync } from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const START_MS = 8_000;
const CALL_MS = 30_000;
const RETRY_MS = 50;

class Unavailable extends Error {}

/** One connection; a line of JSON each way, matched by id. */
class Connection {
  #socket;
  #waiting = new Map();
  #text = "";
  #last = 0;

  constructor(socket) {
    this.#socket = socket;
    socket.setEncoding("utf8").on("data", (text) => this.#read(text));
    socket.on("error", () => {}).on("close", () => this.#end());
    socket.unref();
  }

  get open() {
    return !this.#socket.destroyed;
  }

  ask(fields) {
    const id = (this.#last += 1);
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        this.#waiting.delete(id);
        reject(new Unavailable(`scrubjay did not answer within ${CALL_MS / 1000} s.`));
      }, CALL_MS);
      this.#waiting.set(id, { resolve, reject, late });
      this.#socket.ref();
      this.#socket.write(`${JSON.stringify({ id, ...fields })}\n`);
    });
  }

  close() {
    this.#socket.destroy();
  }

  #read(text) {
    const lines = (this.#text + text).split("\n");
    this.#text = lines.pop();
    for (const line of lines) {
      try {
        const { id, reply } = JSON.parse(line);
        this.#settle(id, ({ resolve }) => resolve(reply));
      } catch {
        return this.close(); // not scrubjay's words: nothing here may end the core
      }
    }
  }

  #end() {
    for (const id of [...this.#waiting.keys()]) {
      const error = new Unavailable("The connection to scrubjay broke; the call may be done.");
      this.#settle(id, ({ reject }) => reject(error));
    }
  }

  #settle(id, how) {
    const call = this.#waiting.get(id);
    if (!call) return;
    this.#waiting.delete(id);
    clearTimeout(call.late);
    if (!this.#waiting.size) this.#socket.unref(); // an idle connection keeps no process alive
    how(call);
  }
}

/** The path of the socket; its folder is this user's alone, so that nobody else can answer. */
function socketPath() {
  const named = process.env.SCRUBJAY_CARAPACE_SOCKET;
  const private_ = process.env.XDG_RUNTIME_DIR ?? join(tmpdir(), `scrubjay-${process.getuid()}`);
  const path = named ?? join(private_, "scrubjay-carapace.sock");
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const folder = lstatSync(dirname(path));
  if (!folder.isDirectory() || folder.uid !== process.getuid() || folder.mode & 0o022) {
    throw new Unavailable(`${dirname(path)} must be a folder that only this user can write to.`);
  }
  return path;
}

function connect(path) {
  return new Promise((resolve, reject) => {
    const socket = createConnection(path);
    socket.once("connect", () => resolve(new Connection(socket))).once("error", reject);
  });
}

function start(path) {
  const [command, ...words] = (process.env.SCRUBJAY_COMMAND ?? "scrubjay").split(" ");
  const config = process.env.SCRUBJAY_CARAPACE_CONFIG;
  const options = ["--socket", `unix://${path}`, "--idle-seconds", "60"];
  if (config) options.push("--config", config);
  // Other cores may use it, too: it is nobody's child, and ends when nobody is connected.
  const child = spawn(command, [...words, "carapace", "serve", ...options], {
    detached: true,
    stdio: "ignore",
  });
  const failed = new Promise((resolve) => child.once("error", resolve));
  child.unref();
  return failed;
}

async function connected() {
  const path = socketPath();
  const ends = Date.now() + START_MS;
  let failed = null;
  for (;;) {
    try {
      return await connect(path);
    } catch {
      failed ??= start(path);
      const pause = new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      const error = await Promise.race([failed, pause]);
      if (error) throw new Unavailable(`scrubjay cannot be started: ${error.message}.`);
      if (Date.now() > ends) throw new Unavailable("scrubjay did not start in time.");
    }
  }
}

class Memory {
  #connection = null;
  #connecting = null;

  async initialize(services) {
    if (services?.verifyOnly) return;
    await this.#open();
  }

  async handleToolInvocation(tool, args, context) {
    const { sessionId: session, group } = context;
    try {
      const connection = await this.#open();
      return await connection.ask({ verb: "invoke", tool, arguments: args, session, group });
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      const told = { code: "PLUGIN_UNAVAILABLE", message: error.message, retriable: true };
      return { ok: false, error: told };
    }
  }

  /** The brief of a group, for a core that asks for it (the hook memory_brief). */
  async getBrief(group) {
    const reply = await (await this.#open()).ask({ verb: "brief", session: "brief hook", group });
    if (!reply.ok) throw new Error(reply.error.message);
    return reply.result;
  }

  async verify() {
    try {
      await (await this.#open()).ask({ verb: "ping" });
      return { ok: true, message: "scrubjay answers." };
    } catch (error) {
      return { ok: false, message: "scrubjay does not answer.", detail: error.message };
    }
  }

  async shutdown() {
    this.#connection?.close();
    this.#connection = null;
  }

  async #open() {
    if (this.#connection?.open) return this.#connection;
    this.#connecting ??= connected().finally(() => (this.#connecting = null));
    this.#connection = await this.#connecting;
    return this.#connection;
  }
}

export default new Memory();
