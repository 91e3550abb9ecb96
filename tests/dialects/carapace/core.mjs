// A stand-in for Carapace's core: loads the plugin in a folder, and carries out the calls it reads,
// one JSON array of [method, ...arguments] lists a line; those of one line overlap.
import { createInterface } from "node:readline";

const { default: plugin } = await import(process.argv[2]);
for await (const line of createInterface({ input: process.stdin })) {
  const calls = JSON.parse(line).map(async ([method, ...args]) => {
    try {
      return (await plugin[method](...args)) ?? null;
    } catch (error) {
      return { raised: error.message };
    }
  });
  console.log(JSON.stringify(await Promise.all(calls)));
}
