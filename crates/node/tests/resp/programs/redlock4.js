// Locks of redlock 4, of one server and of many keys.
const Redis = require("ioredis").default;
const Redlock = require("redlock4");

async function main() {
  const client = new Redis(Number(process.argv[2]));
  const redlock = new Redlock([client], { retryCount: 2, retryDelay: 50, retryJitter: 0 });
  const outcome = (promise) => promise.then(() => "done", (error) => error.name);

  const lock = await redlock.lock("redlock4/one", 10000);
  console.log("acquire", lock.resource, (await client.get("redlock4/one")) === lock.value);
  console.log("taken", await outcome(redlock.lock("redlock4/one", 10000)));
  const longer = await lock.extend(20000);
  console.log("extend", (await client.pttl("redlock4/one")) > 10000);
  console.log("unlock", await outcome(longer.unlock()), await client.exists("redlock4/one"));
  console.log("again", await outcome(longer.unlock()));

  const keys = ["redlock4/a", "redlock4/b", "redlock4/c"];
  const all = await redlock.lock(keys, 10000);
  console.log("all", await client.exists(...keys));
  console.log("one of them", await outcome(redlock.lock("redlock4/b", 10000)));
  console.log("some of them", await outcome(redlock.lock(["redlock4/b", "redlock4/d"], 10000)));
  console.log("none of the others", await client.exists("redlock4/d"));
  console.log("extend", await outcome(all.extend(20000)), (await client.pttl("redlock4/c")) > 10000);
  await all.unlock();
  console.log("unlock", await client.exists(...keys));

  const waits = redlock.lock("redlock4/one", 1500).then(() =>
    new Redlock([client], { retryCount: 400, retryDelay: 50 }).lock("redlock4/one", 10000),
  );
  const second = await waits;
  console.log("after its time", await client.exists("redlock4/one"));
  await second.unlock();
  client.disconnect();
}

main().catch((error) => { console.log("failed", error); process.exit(1); });
