//! A client: a process of its own, which asks, holds, releases, and writes down what it saw.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use catraca_client::{Client, Guard, clock};
use catraca_sim::Random;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::durable::Keeper;
use super::history::{Event, NO_REQUEST, Writer};
use super::workload::{Request, Workload};

/// After healing, nobody waits longer than this for anything.
pub(crate) const SERVED_WITHIN: Duration = Duration::from_secs(30);
/// A node that says nothing for so long beyond what was agreed is not waited for.
const SILENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(200);

/// What a client is told.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ClientOptions {
    /// The members, in the order of asking
    #[arg(long, value_delimiter = ',')]
    node: Vec<String>,
    /// Where the history goes
    #[arg(long)]
    log: PathBuf,
    #[arg(long)]
    seed: u64,
    #[arg(long)]
    algorithm: String,
    /// Time to live of its sessions, in milliseconds
    #[arg(long)]
    ttl: u64,
    /// How many ask side by side
    #[arg(long)]
    workers: usize,
    /// Keeps durable holds instead, by this binary
    #[arg(long)]
    durable: Option<PathBuf>,
}

/// Works until its input ends; then asks for everything once more, and ends.
pub(crate) fn run(options: &ClientOptions) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(work(options))
}

async fn work(options: &ClientOptions) -> Result<()> {
    let log = Arc::new(Writer::create(&options.log)?);
    let finish = end_of_input();
    match &options.durable {
        None => ask_for_locks(options, &log, &finish).await?,
        Some(catraca) => keep_durable_holds(options, catraca, &log, &finish).await?,
    }
    log.happened(NO_REQUEST, Event::Done)
}

async fn keep_durable_holds(
    options: &ClientOptions,
    catraca: &Path,
    log: &Arc<Writer>,
    finish: &watch::Receiver<bool>,
) -> Result<()> {
    let mut keepers = tokio::task::JoinSet::new();
    for number in 0..options.workers {
        let seed = options.seed.wrapping_mul(1_000).wrapping_add(number as u64);
        let keeper = Keeper {
            log: Arc::clone(log),
            catraca: catraca.to_path_buf(),
            nodes: options.node.join(","),
            owner: format!("keeper-{seed}"),
            random: Random::new(seed),
            finish: finish.clone(),
        };
        keepers.spawn_blocking(|| keeper.work());
    }
    while let Some(ended) = keepers.join_next().await {
        ended??;
    }
    Ok(())
}

async fn ask_for_locks(
    options: &ClientOptions,
    log: &Arc<Writer>,
    finish: &watch::Receiver<bool>,
) -> Result<()> {
    let workload = Workload::of(&options.algorithm)?;
    let mut workers = tokio::task::JoinSet::new();
    for number in 0..options.workers {
        let mut nodes = options.node.clone();
        let count = nodes.len();
        nodes.rotate_left(number % count);
        let seed = options.seed.wrapping_mul(1_000).wrapping_add(number as u64);
        let worker = Worker {
            log: Arc::clone(log),
            nodes,
            ttl: Duration::from_millis(options.ttl),
            workload: workload.clone(),
            random: Random::new(seed),
            finish: finish.clone(),
            seed,
            fresh: 0,
        };
        workers.spawn(worker.work());
    }
    while let Some(ended) = workers.join_next().await {
        ended??;
    }
    Ok(())
}

/// Becomes true when standard input ends.
fn end_of_input() -> watch::Receiver<bool> {
    let (ended, has_ended) = watch::channel(false);
    std::thread::spawn(move || {
        let mut bytes = [0; 64];
        while std::io::stdin().read(&mut bytes).is_ok_and(|read| read > 0) {}
        ended.send_replace(true);
    });
    has_ended
}

/// One who asks, with a session of its own.
struct Worker {
    log: Arc<Writer>,
    nodes: Vec<String>,
    ttl: Duration,
    workload: Workload,
    random: Random,
    finish: watch::Receiver<bool>,
    seed: u64,
    fresh: u64,
}

impl Worker {
    async fn work(mut self) -> Result<()> {
        while !*self.finish.borrow() {
            let Some(client) = self.connect().await else { continue };
            // Not for ever: after a fault everybody is at the members that were left.
            let requests = 5 + self.random.below(40);
            for _ in 0..requests {
                if *self.finish.borrow() {
                    break;
                }
                self.fresh += 1;
                let fresh = format!("{}-{}", self.seed, self.fresh);
                let request = self.workload.draw(&mut self.random, &fresh);
                self.ask(&client, &request).await?;
                sleep(Duration::from_millis(self.random.below(30))).await;
            }
            self.nodes.rotate_left(1);
            let _ = timeout(SILENCE, client.close()).await;
        }
        for request in self.workload.all() {
            if !self.is_served(&request).await? {
                // One is enough: the others would take as long again.
                break;
            }
        }
        Ok(())
    }

    /// A session, or nothing for now.
    async fn connect(&self) -> Option<Client> {
        let builder = Client::builder().addresses(self.nodes.clone()).ttl(self.ttl).retry(PAUSE);
        match timeout(SILENCE, builder.connect()).await {
            Ok(Ok(client)) => Some(client),
            Ok(Err(_)) | Err(_) => {
                sleep(PAUSE).await;
                None
            }
        }
    }

    /// Asks, and holds what is granted for a while.
    async fn ask(&mut self, client: &Client, wanted: &Request) -> Result<()> {
        let limit = match self.random.below(5) {
            0 => Duration::ZERO,
            1 => Duration::from_millis(300),
            _ => Duration::from_secs(10),
        };
        let request = self.log.asked(wanted.permits, &wanted.names)?;
        let asked = client.lock_all(wanted.names.clone()).permits(wanted.permits).within(limit);
        match timeout(limit + SILENCE, asked).await {
            Ok(Ok(guard)) => {
                let length = self.length();
                self.hold(request, guard, length).await
            }
            Ok(Err(error)) => self.refused(request, &error.to_string()),
            Err(_) => self.refused(request, "no answer"),
        }
    }

    fn refused(&self, request: u64, why: &str) -> Result<()> {
        self.log.happened(request, Event::Refused { why: why.to_string() })
    }

    /// How long something is held: mostly for a moment, sometimes for longer than a lease.
    fn length(&mut self) -> Duration {
        let millis = match self.random.below(20) {
            0..=11 => self.random.below(20),
            12..=16 => self.random.below(300),
            17 | 18 => self.random.below(2_000),
            _ => self.random.below(6_000),
        };
        Duration::from_millis(millis)
    }

    /// Writes down what becomes of a hold until it is over.
    async fn hold(&mut self, request: u64, mut guard: Guard, length: Duration) -> Result<()> {
        let at = clock::now();
        let (until, fences) = (guard.valid_until(), guard.fences().to_vec());
        self.log.happened_at(at, request, Event::Granted { until, fences })?;
        let mut end = at + length;
        let mut is_lost = false;
        loop {
            tokio::select! {
                () = clock::sleep_until(end) => break,
                _ = guard.changed(), if !is_lost => {}
            }
            let at = clock::now();
            let until = guard.valid_until();
            match guard.loss() {
                None => self.log.happened_at(at, request, Event::Renewed { until })?,
                Some(why) => {
                    is_lost = true;
                    let why = why.to_string();
                    self.log.happened_at(at, request, Event::Lost { until, why })?;
                    // Half of them use up the time that is left to them.
                    end = if self.random.below(2) == 0 { at } else { until };
                }
            }
        }
        self.log.happened(request, Event::Releasing)?;
        if let Ok(Ok(())) = timeout(SILENCE, guard.release()).await {
            self.log.happened(request, Event::Released)?;
        }
        Ok(())
    }

    /// Asks until it is served, or until that takes too long. Whether it was.
    async fn is_served(&mut self, wanted: &Request) -> Result<bool> {
        let request = self.log.asked(wanted.permits, &wanted.names)?;
        self.log.happened(request, Event::Insisted)?;
        let end = clock::now() + SERVED_WITHIN;
        let mut why = String::from("no node answers");
        loop {
            let left = end.since(clock::now());
            if left.is_zero() {
                self.refused(request, &why)?;
                return Ok(false);
            }
            let Some(client) = self.connect().await else { continue };
            let asked = client.lock_all(wanted.names.clone()).permits(wanted.permits).within(left);
            match timeout(left, asked).await {
                Ok(Ok(guard)) => {
                    self.hold(request, guard, Duration::ZERO).await?;
                    return Ok(true);
                }
                Ok(Err(error)) => why = error.to_string(),
                Err(_) => why = String::from("no answer"),
            }
            sleep(PAUSE).await;
        }
    }
}
