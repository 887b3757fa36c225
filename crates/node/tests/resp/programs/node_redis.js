// What people write themselves with node-redis: SET NX PX, and a script that compares and deletes.
const { createClient } = require("redis");

const RELEASE = `
  if redis.call("get", KEYS[1]) == ARGV[1] then
    return redis.call("del", KEYS[1])
  else
    return 0
  end`;

async function main() {
  for (const RESP of [2, 3]) {
    const client = createClient({ RESP, socket: { port: Number(process.argv[2]) } });
    await client.connect();
    const set = (value) => client.set("node-redis", value, { NX: true, PX: 10000 });
    const release = (value) => client.eval(RELEASE, { keys: ["node-redis"], arguments: [value] });
    console.log("set", await set("one"), await set("two"), await set("one"));
    console.log("get", await client.get("node-redis"), (await client.pTTL("node-redis")) > 0);
    console.log("release", await release("two"), await release("one"), await release("one"));
    console.log("gone", await client.get("node-redis"), await client.pTTL("node-redis"));
    console.log("setnx", await client.setNX("node-redis", "one"), await client.setNX("node-redis", "one"));
    console.log("del", await client.del("node-redis"), await client.del("node-redis"));
    const all = [set("a"), client.get("node-redis"), release("a"), client.exists("node-redis")];
    console.log("pipeline", await Promise.all(all));
    client.destroy();
  }
}

main().catch((error) => { console.log("failed", error); process.exit(1); });
