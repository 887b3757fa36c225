// The locks that are known here: a part of the list, as much as somebody wants to see, kept as it changes.
//
// The list is read in parts, by name, and no further than is wanted; reading it to its end takes many parts, so
// that is done only where an order or a choice needs it. Changes of locks that were not read are not wanted
// yet. Memory is bounded: beyond so many locks the list is cut, and says so.

// The most locks that are kept.
export const MOST_LOCKS = 200_000;
// A part of the list.
const PART = 1000;
// The list is not read anew more often, whatever happens; and not within so many times as long as that took.
const ANEW = 3000;
const TIMES_AS_LONG = 10;

// A lock: `{ key, name, permits, holders, queue, touched }`. Of holders and waiters, `since` is the time when it
// began, by the clock of `performance`.
export class Model {
  constructor(api, changed) {
    this.api = api;
    // Called when something is different: with true if locks have come or gone.
    this.changed = changed;
    this.prefix = "";
    this.locks = new Map();
    this.silent = [];
    this.trouble = null;
    this.clear();
  }

  clear() {
    this.locks.clear();
    this.cursor = null;
    this.isWhole = false;
    this.isCut = false;
    this.wanted = 0;
    this.frontier = null;
    this.lastKey = null;
    this.reading = null;
    this.abort?.abort();
    this.abort = new AbortController();
  }

  // Only names that begin so, from now on.
  choose(prefix) {
    if (prefix === this.prefix) return;
    this.prefix = prefix;
    this.clear();
  }

  // Whether something that was asked for has yet to come.
  isReading() {
    return this.reading !== null;
  }

  // Sees to it that so many locks are known, or all there are.
  want(count) {
    this.wanted = Math.max(this.wanted, Math.min(count, MOST_LOCKS));
    if (this.isWhole || this.reading !== null || this.locks.size >= this.wanted) return;
    const signal = this.abort.signal;
    const reading = this.read(signal).then(() => { this.trouble = null; }, (error) => {
      if (!signal.aborted) this.trouble = error.message;
    }).finally(() => {
      if (this.reading !== reading) return;
      this.reading = null;
      this.changed(true);
    });
    this.reading = reading;
  }

  async read(signal) {
    while (!this.isWhole && this.locks.size < this.wanted) {
      const began = performance.now();
      const part = await this.part(this.cursor, signal);
      if (signal.aborted) return;
      this.take(part, began);
      this.cursor = part.next;
      this.isWhole = part.next === null;
      this.frontier = part.locks.at(-1)?.name ?? this.frontier;
      if (this.locks.size >= MOST_LOCKS) {
        this.isCut = !this.isWhole;
        this.isWhole = true;
      }
      this.changed(true);
      // Whoever wants a lock from the node goes first.
      await pause(performance.now() - began);
    }
  }

  part(cursor, signal) {
    const query = new URLSearchParams({ limit: PART });
    if (this.prefix !== "") query.set("prefix", this.prefix);
    if (cursor !== null) query.set("cursor", cursor);
    return this.api.json(`/v1/locks?${query}`, { signal });
  }

  take(part, now) {
    this.silent = part.silent;
    for (const told of part.locks) {
      const key = keyOf(told.name, told.permits);
      // A lock with very many who wait goes on in the next part.
      const isContinued = key === this.lastKey && this.locks.has(key);
      const lock = isContinued ? this.locks.get(key) : made(told.name, told.permits);
      lock.holders.push(...told.holders.map((holder) => holderOf(holder, now)));
      lock.queue.push(...told.queue.map((waiter) => waiterOf(waiter, now)));
      this.locks.set(key, lock);
      this.lastKey = key;
    }
  }

  // Something may have happened of which nobody told: reads again what is known, at its time.
  gap() {
    if (this.due !== undefined) return;
    if (this.reading !== null && this.locks.size <= PART) {
      // It has just begun: as when the stream is opened while the list is read.
      const { wanted } = this;
      this.clear();
      return this.want(wanted);
    }
    const wait = Math.max(0, (this.next ?? 0) - performance.now());
    this.due = setTimeout(() => { this.due = undefined; this.refresh(); }, wait);
  }

  async refresh() {
    const began = performance.now();
    const { prefix, wanted } = this;
    const other = new Model(this.api, () => {});
    other.prefix = prefix;
    this.fresh?.abort.abort();
    this.fresh = other;
    // What happens meanwhile is heard by both.
    other.want(Math.max(wanted, this.locks.size));
    await other.reading;
    if (this.fresh !== other) return;
    this.fresh = null;
    this.next = performance.now() + Math.max(ANEW, TIMES_AS_LONG * (performance.now() - began));
    if (this.prefix !== prefix || other.abort.signal.aborted) return;
    this.trouble = other.trouble;
    if (other.trouble === null) {
      const { locks, cursor, isWhole, isCut, frontier, silent } = other;
      Object.assign(this, { locks, cursor, isWhole, isCut, frontier, silent });
    }
    this.changed(true);
  }

  // What the node tells of changes.
  apply({ locks }) {
    if (this.fresh) this.fresh.apply({ locks });
    const now = performance.now();
    let hasMoved = false;
    for (const told of locks) {
      if (!told.name.startsWith(this.prefix)) continue;
      const key = keyOf(told.name, told.permits);
      let lock = this.locks.get(key);
      if (lock === undefined) {
        if (!told.entered && !told.waits) continue;
        const isBeyond = !this.isWhole && (this.frontier === null || compareNames(told.name, this.frontier) > 0);
        if (isBeyond || this.locks.size >= MOST_LOCKS) continue;
        lock = made(told.name, told.permits);
        this.locks.set(key, lock);
        hasMoved = true;
      }
      change(lock, told, now);
      if (lock.holders.length === 0 && lock.queue.length === 0) {
        this.locks.delete(key);
        hasMoved = true;
      }
    }
    this.changed(hasMoved);
  }

  // Looks up one lock, as changes do not say everything.
  async verify(lock) {
    lock.touched = null;
    const began = performance.now();
    const path = `/v1/locks?${new URLSearchParams({ name: lock.name, limit: PART })}`;
    const { locks } = await this.api.json(path, { signal: this.abort.signal });
    // It has changed again meanwhile: that is newer.
    if (lock.touched !== null || this.locks.get(lock.key) !== lock) return;
    const told = locks.find((it) => it.permits === lock.permits);
    if (told === undefined) {
      this.locks.delete(lock.key);
    } else {
      lock.holders = told.holders.map((holder) => holderOf(holder, began));
      lock.queue = told.queue.map((waiter) => waiterOf(waiter, began));
    }
    this.changed(told === undefined);
  }

  close() {
    clearTimeout(this.due);
    this.fresh?.abort.abort();
    this.abort.abort();
  }
}

// The order of the node: by the bytes of UTF-8, which is that of code points.
export function compareNames(one, other) {
  const length = Math.min(one.length, other.length);
  for (let index = 0; index < length; index += 1) {
    const [a, b] = [one.charCodeAt(index), other.charCodeAt(index)];
    if (a === b) continue;
    const isHigh = (unit) => unit >= 0xd800 && unit <= 0xdfff;
    // The two halves of a large code point are smaller than some small ones.
    if (isHigh(a) !== isHigh(b)) return isHigh(a) ? 1 : -1;
    return a - b;
  }
  return one.length - other.length;
}

// The first `count` of those that `fits` chooses, in this order, and how many there are. Looks at each once.
export function first(locks, fits, compare, count) {
  let best = [];
  let total = 0;
  const trim = () => { best.sort(compare); best.length = Math.min(best.length, count); };
  let worst = null;
  for (const lock of locks) {
    if (!fits(lock)) continue;
    total += 1;
    if (worst !== null && compare(lock, worst) >= 0) continue;
    best.push(lock);
    if (best.length >= 2 * count + 64) {
      trim();
      worst = best.at(-1);
    }
  }
  trim();
  return { best, total };
}

export function longestWait(lock) {
  return lock.queue.reduce((since, waiter) => Math.min(since, waiter.since), Infinity);
}

export function heldSince(lock) {
  return lock.holders.reduce((since, holder) => Math.min(since, holder.since), Infinity);
}

function keyOf(name, permits) {
  return `${permits} ${name}`;
}

function made(name, permits) {
  return { key: keyOf(name, permits), name, permits, holders: [], queue: [], touched: null };
}

export function holderOf({ member, fence, label, pid, host, held_ms, durable }, now) {
  // A durable hold has an owner, whoever has asked for it.
  return { member, fence, label: durable?.owner ?? label, pid, host, since: now - held_ms, durable: durable ?? null };
}

export function waiterOf({ member, place, label, pid, host, waited_ms }, now) {
  return { member, place, label, pid, host, since: now - waited_ms };
}

function change(lock, { entered = [], left = [], waits = [], waited = [] }, now) {
  lock.touched = now;
  if (left.length > 0) lock.holders = lock.holders.filter((holder) => !left.includes(holder.fence));
  for (const { member, label } of waited) {
    const index = lock.queue.findIndex((waiter) => waiter.member === member && waiter.label === label);
    if (index >= 0) lock.queue.splice(index, 1);
  }
  for (const { member, label, fence, ago_ms } of entered) {
    if (lock.holders.some((holder) => holder.fence === fence)) continue;
    lock.holders.push({ member, label, fence, since: now - ago_ms, durable: null });
  }
  for (const { member, label, ago_ms } of waits) lock.queue.push({ member, label, since: now - ago_ms });
}

function pause(millis) {
  return new Promise((resolve) => { setTimeout(resolve, millis); });
}
