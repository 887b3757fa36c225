//! docs/BENCHMARKS.md, from what was measured.

use super::machine::Machine;
use super::results::{Cores, Ratio, Results, ceilings};
use super::{Options, table};

/// The whole page.
pub(super) fn write(
    options: &Options,
    machine: &Machine,
    results: &Results,
    worst: &[Ratio],
) -> String {
    let Options { seconds, rounds, .. } = options;
    let mut page = format!("{HEAD}\n## Where and when\n\n");
    let Machine { date, processor, cores, memory, system, disk, versions } = machine;
    page += &format!(
        "{date}; {processor}, {cores} cores, {memory}; {system}; temporary files on {disk}. Each load was \
         measured for {seconds} s after a warm-up of half that, {rounds} time(s); the middle one counts.\n\n"
    );
    for (what, version) in versions {
        page += &format!("- {what} {version}\n");
    }
    for (cores, title) in
        [(Cores::Free, "All processes on all cores"), (Cores::Pinned, "All processes on one core")]
    {
        page += &format!("\n## {title}\n\n{}", table::figures(results, cores));
    }
    page += &format!("\n## Goals\n\n{GOALS}\n{}", table::ratios(worst));
    let ceilings = ceilings(results);
    if !ceilings.is_empty() {
        page += &format!("\n{CEILING}\n{}", table::ceilings(&ceilings));
    }
    page += "\nAll figures are in [benchmarks.json](benchmarks.json).\n";
    if !results.missing.is_empty() {
        page += "\nNot measured:\n\n";
        for (what, why) in &results.missing {
            page += &format!("- {what}: {}\n", why.replace('\n', " "));
        }
    }
    page + "\n" + TAIL
}

const HEAD: &str = "\
# Catraca beside other lock services

This page is written by `cargo xtask bench peers`, which installs the other services from Debian's packages,
starts and stops them. Everything runs on one machine over the loopback interface, so it shows what the
software costs, not what a network does. Run it on your own machine; figures of different machines cannot be
compared.

A client acquires a lock and releases it, again and again, and waits for the confirmation of both. There are
four loads: one client; 64 clients on 64 locks; 8 clients on one lock; 64 clients on one lock. Where clients
meet, the table shows how often the lock went to another client, the time from a client's release to the entry
of the next client (the median, p50, and what one in a hundred takes longer than, p99), and Jain's index: 1 if
all clients got the lock equally often, 1/n if one of n got it always. While it is measured, the clients check that nobody else is inside: with a
counter that two at once would break, and by the times of their visits. A service that fails is marked.
";

const GOALS: &str = "\
Of each goal the load that is furthest from it. Where clients poll, whoever releases takes the lock again before
the others have asked: the entries per second are those of one client, and its Jain's index says so. How often
the lock goes to somebody else is what those who wait notice; both are compared. The hand-over of Redis by BLPOP has
no goal: it is no lock, because nobody gets it back from a client that dies. Durable holds have none either: they are
there to be compared with etcd and ZooKeeper, which promise the same.

What is missed, and why:

- **Entries per second where clients of Redis poll**: nobody hands a lock on there. What nothing can exceed is below.
- **RESP beside Redis, 64 clients on 64 locks**: both take two exchanges for an entry, and Redis does less in each. It
  stores a key. A member knows whose lock it is, keeps the queue, steps the algorithm of the group, makes a fence, and
  can say afterwards who waited for how long.
- **One member beside one ZooKeeper server, 64 clients on 64 locks**: the server writes the requests of all clients to
  its disk together, so an entry costs it far less than with one client. A member does as much for each entry whoever
  else asks.
- **HTTP**: every exchange has a header of some hundred bytes and JSON to be read and written at both ends. It is for
  people, scripts and languages without a client; whoever counts entries takes RESP or the native protocol.
";

const CEILING: &str = "\
What can be reached at all: the bare TCP server beside the others. Whoever polls takes the lock again and again before
the others have asked, and waits for two answers each time, as the clients of every service do. No service whose
clients wait for both answers is quicker than the bare server, so where that has fewer than five times the
entries of Redis, the goal of five times the entries cannot be met by anything. What those who wait notice is how
often the lock goes to somebody else, and how soon.
";

const TAIL: &str = "\
## What each of them promises

They do not promise the same. etcd and ZooKeeper promise more than the others, and pay for it on every grant.

| lock service | before a grant is confirmed | a held lock survives | a client that dies | order | number to fence with |
|---|---|---|---|---|---|
| bare TCP lock server | nothing | nothing | keeps the lock for ever | first come, first served | no |
| etcd | written to the disks of a majority (fsync) | any minority of members, and a restart of all | loses it when its lease runs out | first come, first served | revision |
| ZooKeeper | written to the disks of a majority (fsync) | any minority of servers, and a restart of all | loses it when its session runs out | first come, first served | number of the transaction |
| Redis, SET NX PX | in the memory of one server | nothing: after a restart it is free, and a new holder may get in beside the old one | loses it when its time to live is over, and so does one that is only slow | none: whoever asks at the right moment | no |
| Redis, BLPOP | in the memory of one server | nothing | keeps the lock for ever | first come, first served | no |
| Redlock | in the memory of two of three servers | one server, if it stays away for the time to live; relies on clocks | loses it when its time to live is over | none | no |
| Catraca | in the memory of the member that the client uses, and of the one that asks next | all other members; if the client's own member dies, the hold is lost and the client is told; nobody else gets in before its lease is over | loses it with its connection or when its session runs out | first come, first served at a member; members take turns | yes, always growing |

Where etcd and ZooKeeper promise more: a client can lose its server and keep its lock. With Catraca that needs
a durable hold, which is written to the registry before it is confirmed (a majority of disks, fsync), and costs
accordingly. Over HTTP these are rows of the tables above, and `catraca bench --changes` measures them within a program.

etcd and ZooKeeper wait for the disk. `TMPDIR=/dev/shm cargo xtask bench peers` puts their files into memory and
shows what is left without it; what they promise is gone then.

## How each is used

- **bare TCP lock server**: a queue for each lock, five bytes for a request, one for an answer, one thread. It
  is the floor for anything that goes over TCP.
- **etcd**: as `etcdctl lock` and the library for Go do it. One lease for a client; a transaction creates the
  client's key and reads the first one; whoever is not the first watches the key before and looks at its own
  key afterwards; the release deletes it. Its own settings. gRPC by tonic, one connection for a client.
- **ZooKeeper**: the recipe of its documentation, with nodes that are ephemeral and sequential; the request for
  the list of nodes does not wait for the answer about the own node. Its own settings, without a limit of
  connections; 512 MB of memory for each server.
- **Redis**: `SET NX PX` and a script that deletes the key if it has the client's value. Whoever finds the lock
  taken asks again after 100 ms, as redis-py does; the second row asks every millisecond, which no library
  does. No snapshots and no log are written.
- **Redis, BLPOP**: a list with one element for each lock.
- **Redlock**: the same as Redis on three servers at the same time; two are enough. Whoever fails tries again
  after 200 to 300 ms, as the library for Node.js does.
- **Catraca**: `catraca node` with a lease of 60 s, because all processes share the machine; clients of three
  members are spread over them, as those of etcd and ZooKeeper are. Over RESP by CATRACA.LOCK and
  CATRACA.UNLOCK; as a Redis library uses it by the same commands as Redis, where a `SET NX` waits in the
  queue for up to a second (`--park 1s`); over HTTP by `POST /v1/acquire` and `DELETE /v1/holds/ID` on one connection. Within the
  program the nodes run in the process of the clients, three of them linked over TCP.

All clients run in one process, each with a connection of its own (TCP_NODELAY), on one thread when pinned and
on as many as there are cores otherwise. A lock of Catraca stays at the member that used it last: with three
members, one client alone pays no message between members.
";
