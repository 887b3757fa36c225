// The mutex of redis-semaphore.
const Redis = require("ioredis").default;
const { Mutex, RedlockMutex } = require("redis-semaphore");

async function main() {
  const client = new Redis(Number(process.argv[2]));
  const outcome = (promise) => promise.then(() => "done", (error) => error.message);
  const options = { lockTimeout: 8000, acquireTimeout: 200, retryInterval: 20, refreshInterval: 500 };

  for (const make of [(o) => new Mutex(client, "lock", o), (o) => new RedlockMutex([client], "lock", o)]) {
    const [mutex, other] = [make(options), make(options)];
    console.log("acquire", await outcome(mutex.acquire()), mutex.isAcquired);
    console.log("key", await client.exists("mutex:lock"));
    console.log("try", await other.tryAcquire());
    console.log("taken", (await outcome(other.acquire())) === "done");
    // It is renewed all the time, so more is left of it than there would be.
    await new Promise((resolve) => setTimeout(resolve, 2000));
    console.log("renewed", mutex.isAcquired, (await client.pttl("mutex:lock")) > 6200);
    await mutex.release();
    console.log("release", mutex.isAcquired, await client.exists("mutex:lock"));
    console.log("next", await outcome(other.acquire()));
    await other.release();
  }
  client.disconnect();
}

main().catch((error) => { console.log("failed", error); process.exit(1); });
