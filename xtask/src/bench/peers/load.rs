//! What clients do to a lock service, and what is seen of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

/// Whoever waits longer than this when time is over waits for ever.
const STUCK: Duration = Duration::from_secs(60);

/// A client of a lock service, which takes one lock again and again.
pub(super) trait Contender: Send + 'static {
    /// Returns when it is inside.
    fn acquire(&mut self) -> impl Future<Output = Result<()>> + Send;
    /// Returns when the service has confirmed it.
    fn release(&mut self) -> impl Future<Output = Result<()>> + Send;
}

/// A lock service that runs.
pub(super) trait Service {
    type Client: Contender;
    /// A client for this lock, with a connection of its own. Clients are spread over the members by
    /// their numbers.
    fn client(&self, number: usize, lock: &str) -> impl Future<Output = Result<Self::Client>>;
}

/// How many clients there are, and on how many locks.
pub(super) struct Load {
    pub(super) key: &'static str,
    pub(super) clients: usize,
    pub(super) locks: usize,
}

/// What every lock service is measured with.
pub(super) const LOADS: [Load; 4] = [
    Load { key: "one", clients: 1, locks: 1 },
    Load { key: "apart", clients: 64, locks: 64 },
    Load { key: "eight", clients: 8, locks: 1 },
    Load { key: "crowd", clients: 64, locks: 1 },
];

impl Load {
    /// Whether clients meet in a lock.
    pub(super) fn is_contended(&self) -> bool {
        self.clients > self.locks
    }
}

/// What one load shows of one service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Figures {
    /// Acquired and released, per second.
    pub(super) per_second: f64,
    /// Where clients meet.
    pub(super) contended: Option<Contended>,
    /// How often two were inside.
    pub(super) violations: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Contended {
    /// From a client's release to the entry of another one, in microseconds: the median, and what one
    /// in a hundred takes longer than. None if the lock went to no other client.
    pub(super) hand_over: Option<[f64; 2]>,
    /// How often the lock went to another client, per second. Where whoever releases can take it again
    /// before the others ask, that is much less than the entries.
    pub(super) hand_overs_per_second: f64,
    /// How evenly the entries are spread over the clients: 1 if all have as many.
    pub(super) jain: f64,
}

/// One lock, as those who are inside see it.
#[derive(Default)]
struct Inside {
    holders: AtomicU64,
    /// Everybody inside adds one, in two steps: two at once lose one.
    counter: AtomicU64,
    entries: AtomicU64,
    violations: AtomicU64,
}

impl Inside {
    /// What a client does while it holds the lock. Where clients meet, it lets others run before it
    /// leaves: on one core nobody else could be seen inside otherwise.
    async fn visit(&self, is_contended: bool) {
        if self.holders.fetch_add(1, SeqCst) != 0 {
            self.violations.fetch_add(1, Relaxed);
        }
        let seen = self.counter.load(Relaxed);
        if is_contended {
            tokio::task::yield_now().await;
        }
        self.counter.store(seen + 1, Relaxed);
        self.entries.fetch_add(1, Relaxed);
        self.holders.fetch_sub(1, SeqCst);
    }

    fn violations(&self) -> u64 {
        let lost = self.entries.load(SeqCst).abs_diff(self.counter.load(SeqCst));
        self.violations.load(SeqCst).max(lost)
    }
}

/// When a client was inside, in nanoseconds since the beginning, and which one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    entered: u64,
    left: u64,
    client: usize,
}

/// Warms up, then measures for `time`.
pub(super) async fn measure<S: Service>(
    service: &S,
    load: &Load,
    time: Duration,
) -> Result<Figures> {
    let locks: Vec<Arc<Inside>> = (0..load.locks).map(|_| Arc::default()).collect();
    let mut clients = Vec::new();
    for number in 0..load.clients {
        let lock = number % load.locks;
        let client = service.client(number, &format!("bench-{}-{lock}", load.key)).await;
        clients.push((number, client.context("a client cannot connect")?, &locks[lock]));
    }
    let start = Instant::now();
    let (begin, end) = (time / 2, time / 2 + time);
    let mut running = JoinSet::new();
    for (number, client, inside) in clients {
        let shift = Shift { number, start, begin, end, is_contended: load.is_contended() };
        running.spawn(shift.work(client, Arc::clone(inside)));
    }
    let mut counts = vec![0; load.clients];
    let mut entries = Vec::new();
    let joined = async {
        while let Some(worked) = running.join_next().await {
            let worked = worked??;
            counts[worked.number] = worked.count;
            entries.extend(worked.entries);
        }
        Ok::<_, anyhow::Error>(())
    };
    tokio::time::timeout(end + STUCK, joined).await.context("a client waits for ever")??;
    let overlaps = overlaps(&mut entries);
    let seen: u64 = locks.iter().map(|lock| lock.violations()).sum();
    Ok(Figures {
        per_second: counts.iter().sum::<u64>() as f64 / time.as_secs_f64(),
        contended: load.is_contended().then(|| contended(&entries, &counts, time)),
        violations: seen.max(overlaps),
    })
}

/// When a client works.
struct Shift {
    number: usize,
    start: Instant,
    /// What is before is to warm up.
    begin: Duration,
    end: Duration,
    is_contended: bool,
}

struct Worked {
    number: usize,
    count: u64,
    entries: Vec<Entry>,
}

impl Shift {
    async fn work<C: Contender>(self, mut client: C, inside: Arc<Inside>) -> Result<Worked> {
        let mut worked = Worked { number: self.number, count: 0, entries: Vec::new() };
        loop {
            client.acquire().await?;
            let entered = self.start.elapsed();
            inside.visit(self.is_contended).await;
            let left = self.start.elapsed();
            client.release().await?;
            if entered >= self.end {
                return Ok(worked);
            }
            if entered < self.begin {
                continue;
            }
            worked.count += 1;
            if self.is_contended {
                let (entered, left) = (entered.as_nanos() as u64, left.as_nanos() as u64);
                worked.entries.push(Entry { entered, left, client: self.number });
            }
        }
    }
}

/// Puts the entries in order, and counts those that began before the one before them was over.
fn overlaps(entries: &mut [Entry]) -> u64 {
    entries.sort_unstable();
    entries.windows(2).filter(|pair| pair[1].entered < pair[0].left).count() as u64
}

fn contended(entries: &[Entry], counts: &[u64], time: Duration) -> Contended {
    let delays = delays(entries);
    let hand_overs_per_second = delays.len() as f64 / time.as_secs_f64();
    Contended { hand_over: hand_over(&delays), hand_overs_per_second, jain: jain(counts) }
}

/// The times from a release to the entry of another client, in ascending order.
fn delays(entries: &[Entry]) -> Vec<u64> {
    let mut delays: Vec<u64> = entries
        .windows(2)
        .filter(|pair| pair[0].client != pair[1].client)
        .map(|pair| pair[1].entered.saturating_sub(pair[0].left))
        .collect();
    delays.sort_unstable();
    delays
}

/// Median and 99th percentile.
fn hand_over(delays: &[u64]) -> Option<[f64; 2]> {
    let at = |share: f64| {
        let index = (delays.len() as f64 * share) as usize;
        delays.get(index).map(|&nanos| nanos as f64 / 1e3)
    };
    Some([at(0.5)?, at(0.99)?])
}

fn jain(counts: &[u64]) -> f64 {
    let (sum, squares) = counts.iter().fold((0.0, 0.0), |(sum, squares), &count| {
        (sum + count as f64, squares + (count * count) as f64)
    });
    if squares == 0.0 { 0.0 } else { sum * sum / (counts.len() as f64 * squares) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A service that lets everybody in if it is broken.
    struct Local {
        lock: Arc<tokio::sync::Semaphore>,
    }

    struct LocalClient {
        lock: Arc<tokio::sync::Semaphore>,
        held: Option<tokio::sync::OwnedSemaphorePermit>,
    }

    impl Service for Local {
        type Client = LocalClient;
        async fn client(&self, _number: usize, _lock: &str) -> Result<LocalClient> {
            Ok(LocalClient { lock: Arc::clone(&self.lock), held: None })
        }
    }

    impl Contender for LocalClient {
        async fn acquire(&mut self) -> Result<()> {
            self.held = Some(Arc::clone(&self.lock).acquire_owned().await?);
            Ok(())
        }
        async fn release(&mut self) -> Result<()> {
            self.held = None;
            Ok(())
        }
    }

    const SHARED: Load = Load { key: "test", clients: 4, locks: 1 };

    async fn measured(permits: usize) -> Figures {
        let service = Local { lock: Arc::new(tokio::sync::Semaphore::new(permits)) };
        measure(&service, &SHARED, Duration::from_millis(50)).await.unwrap()
    }

    #[tokio::test]
    async fn one_inside_at_a_time_is_no_violation_and_everybody_gets_as_much() {
        let figures = measured(1).await;
        assert_eq!(figures.violations, 0);
        assert!(figures.per_second > 0.0);
        assert!(figures.contended.unwrap().jain > 0.9);
    }

    #[tokio::test]
    async fn a_service_that_lets_two_in_is_caught_even_on_one_thread() {
        assert!(measured(2).await.violations > 0);
    }

    #[test]
    fn hand_overs_are_counted_between_different_clients_only() {
        let entry = |entered, left, client| Entry { entered, left, client };
        let mut entries = [entry(9_000, 9_500, 1), entry(0, 1_000, 0), entry(1_500, 4_000, 0)];
        assert_eq!(overlaps(&mut entries), 0);
        let contended = contended(&entries, &[2, 1], Duration::from_millis(500));
        assert_eq!(contended.hand_over, Some([5.0, 5.0]));
        assert_eq!(contended.hand_overs_per_second, 2.0);
        assert_eq!(hand_over(&delays(&entries[..2])), None);
        entries[1].left = 9_001;
        assert_eq!(overlaps(&mut entries), 1);
    }

    #[test]
    fn the_index_is_one_if_all_have_as_much_and_the_share_of_those_who_have_otherwise() {
        assert_eq!(jain(&[5, 5, 5, 5]), 1.0);
        assert_eq!(jain(&[5, 0, 0, 0]), 0.25);
        assert_eq!(jain(&[0, 0]), 0.0);
    }
}
