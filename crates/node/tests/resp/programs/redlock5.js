// Locks of redlock 5 and of its successor, of one server and of many keys.
const Redis = require("ioredis").default;
const classes = [require("redlock5").default, require("@sesamecare-oss/redlock").Redlock];

async function use(Redlock, client) {
  const settings = { retryCount: 1, retryDelay: 50, retryJitter: 0 };
  const redlock = new Redlock([client], settings);
  redlock.on("error", () => {});
  const outcome = (promise) => promise.then(() => "done", (error) => error.name);
  const keys = ["redlock5/a", "redlock5/b"];

  const lock = await redlock.acquire(keys, 10000);
  console.log("acquire", lock.resources, await client.exists(...keys));
  console.log("value", (await client.get("redlock5/b")) === lock.value);
  console.log("taken", await outcome(redlock.acquire(["redlock5/b"], 10000)));
  const longer = await lock.extend(20000);
  console.log("extend", (await client.pttl("redlock5/a")) > 10000);
  console.log("release", await outcome(longer.release()), await client.exists(...keys));
  console.log("again", await outcome(longer.release()));

  const result = await redlock.using(["redlock5/c"], 8000, { automaticExtensionThreshold: 7000 }, async (signal) => {
    // It is extended after a second, so more is left of it than there would be.
    await new Promise((resolve) => setTimeout(resolve, 2000));
    return [signal.aborted, (await client.pttl("redlock5/c")) > 6200];
  });
  console.log("using", result, await client.exists("redlock5/c"));
}

async function main() {
  const client = new Redis(Number(process.argv[2]));
  for (const Redlock of classes) {
    await use(Redlock, client);
  }
  client.disconnect();
}

main().catch((error) => { console.log("failed", error); process.exit(1); });
