//! A run, from the first process to the verdict. It takes place inside the enclosure.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use catraca_client::{Time, clock};
use rustix::process::Signal;

use super::client::SERVED_WITHIN;
use super::enclosure;
use super::fault::{Action, Host, Kind, Target};
use super::history::{Event, History};
use super::judge::{self, Healing, InUse, Memory, Violation};
use super::network::Network;
use super::options::{Inside, LEASE};
use super::plan::{Plan, Terms};
use super::processes::Processes;
use super::report::{self, Log, views};

const LOOK: Duration = Duration::from_millis(20);
const PROGRESS: Duration = Duration::from_secs(10);
/// A group grants its first locks within this time.
const COMING_UP: Duration = Duration::from_secs(60);
/// When so many processes have ended by themselves before anybody was served, it is not worth waiting.
const MOST_ENDS: usize = 20;
/// Load without faults, before the memory is looked at for the first time.
const WARM_UP: Duration = Duration::from_secs(3);
/// The processes of the members may be larger by so many bytes in the end than before the faults: what
/// was in use at the worst moment is not all given back to the system.
const ALLOWANCE: u64 = 48 << 20;
/// How long memory may take to return.
const SETTLING: Duration = Duration::from_secs(20);
/// So often members are asked what they keep.
const ASKING: Duration = Duration::from_millis(500);
/// Members that were told to end have done so within this time.
const ENDING: Duration = Duration::from_secs(20);

/// How a run came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Holds,
    Violated,
    /// It was told to stop.
    Stopped,
}

struct Run {
    inside: Inside,
    kinds: Vec<Kind>,
    network: Network,
    processes: Processes,
    log: Log,
    stop: Arc<AtomicBool>,
    progress: Instant,
    /// Of the members, when everything is over.
    memory: Vec<Memory>,
}

/// Why a phase ended before its time.
enum Cut {
    Stopped,
    Violated(Vec<Violation>),
    Failed(anyhow::Error),
}

pub(crate) fn run(inside: &Inside, kinds: Vec<Kind>) -> Result<Outcome> {
    let mut log = Log::create(&inside.folder)?;
    log.plain(&format!("$ {}", inside.options.command()));
    let mut network = Network::make(&inside.options.layout().hosts())?;
    network.check(Host::Member(0), Host::Member(1))?;
    let mut run = Run {
        inside: inside.clone(),
        kinds,
        network,
        processes: Processes::prepare(inside)?,
        log,
        stop: enclosure::stop_flag(),
        progress: Instant::now(),
        memory: Vec::new(),
    };
    if !run.processes.keep_durable_holds() {
        run.log.plain("this build has no durable holds: they are left out");
    }
    let plan = run.plan();
    match run.phases(&plan) {
        Ok(()) => {
            run.table(plan.faults, 0);
            if let Some(rule) = &inside.options.broken {
                run.log.say(&format!("nothing was found although '{rule}' is broken"));
            }
            Ok(Outcome::Holds)
        }
        Err(Cut::Stopped) => {
            run.log.say("told to stop");
            Ok(Outcome::Stopped)
        }
        Err(Cut::Violated(violations)) => {
            run.violated(&violations);
            run.table(plan.faults, violations.len());
            Ok(Outcome::Violated)
        }
        Err(Cut::Failed(error)) => Err(error),
    }
}

type Phase<T = ()> = Result<T, Cut>;

impl From<anyhow::Error> for Cut {
    fn from(error: anyhow::Error) -> Self {
        Cut::Failed(error)
    }
}

impl Run {
    fn plan(&self) -> Plan {
        let options = &self.inside.options;
        let (layout, length) = (options.layout(), options.length());
        let terms = Terms { layout, kinds: self.kinds.clone(), lease: LEASE, length };
        Plan::draw(&terms, options.seed())
    }

    fn phases(&mut self, plan: &Plan) -> Phase {
        self.come_up()?;
        self.wait(WARM_UP)?;
        let before = self.processes.memory();
        self.carry_out(plan)?;
        let healing = Healing { at: clock::now(), limit: SERVED_WITHIN };
        self.log.say("all faults are over: everybody asks for everything once more");
        self.finish_clients()?;
        self.memory = self.settle(&before)?;
        let in_use = self.forget()?;
        self.end_members()?;
        self.processes.read()?;
        let mut violations = judge::judge(&self.processes.histories, Some(healing));
        violations.extend(judge::judge_memory(&self.memory, ALLOWANCE, clock::now()));
        violations.extend(judge::judge_in_use(&in_use, clock::now()));
        if violations.is_empty() { Ok(()) } else { Err(Cut::Violated(violations)) }
    }

    /// Looks after the processes, and now and then at what the clients say.
    fn look(&mut self) -> Phase {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Cut::Stopped);
        }
        for line in self.processes.tend()? {
            self.log.say(&line);
        }
        if self.progress.elapsed() >= PROGRESS {
            self.progress = Instant::now();
            self.processes.read()?;
            let memory = self.processes.memory();
            self.log.progress(&self.processes.histories, &memory);
            let violations = judge::judge(&self.processes.histories, None);
            if !violations.is_empty() {
                return Err(Cut::Violated(violations));
            }
        }
        std::thread::sleep(LOOK);
        Ok(())
    }

    fn wait(&mut self, time: Duration) -> Phase {
        let begin = Instant::now();
        while begin.elapsed() < time {
            self.look()?;
        }
        Ok(())
    }

    /// Waits until every client was granted something.
    fn come_up(&mut self) -> Phase {
        let begin = Instant::now();
        loop {
            self.look()?;
            self.processes.read()?;
            let histories = &self.processes.histories;
            if !histories.is_empty() && histories.iter().all(is_served) {
                self.log.say("the group is up, and everybody has been served");
                return Ok(());
            }
            let is_hopeless = self.processes.ended_by_themselves > MOST_ENDS;
            if begin.elapsed() > COMING_UP || is_hopeless {
                let folder = self.inside.folder.display();
                return Err(anyhow!("the group does not come up: see the logs in {folder}").into());
            }
        }
    }

    fn carry_out(&mut self, plan: &Plan) -> Phase {
        let begin = Instant::now();
        for (at, action) in &plan.actions {
            while begin.elapsed() < *at {
                self.look()?;
            }
            self.act(action)?;
        }
        Ok(())
    }

    fn act(&mut self, action: &Action) -> Result<()> {
        let (processes, network) = (&mut self.processes, &mut self.network);
        match action {
            Action::Say(text) => {
                self.log.fault(text);
                Ok(())
            }
            Action::Kill(target) => processes.end(*target, Signal::KILL),
            Action::Terminate(target) => processes.end(*target, Signal::TERM),
            Action::Start(target) => {
                processes.want(*target);
                Ok(())
            }
            Action::Stop(target) => processes.signal(*target, Signal::STOP),
            Action::Continue(target) => processes.signal(*target, Signal::CONT),
            Action::Drop { from, to } => network.drop_from(*from, *to),
            Action::Pass { from, to } => network.pass(*from, *to),
            Action::Slow(host) => network.slow(*host),
            Action::Fast(host) => network.fast(*host),
            Action::Fill(number) => processes.fill(*number),
            Action::Free(number) => processes.free(*number),
        }
    }

    /// Waits until all clients have asked for everything once more; no longer than they may take.
    fn finish_clients(&mut self) -> Phase {
        // One that was killed just before is to be there too.
        self.look()?;
        self.processes.finish_clients();
        let begin = Instant::now();
        // What was asked for before may still be waited for, and every request has its own limit.
        while self.processes.clients_run() && begin.elapsed() < 4 * SERVED_WITHIN {
            self.look()?;
        }
        Ok(())
    }

    /// Waits until the memory has returned to where it was; no longer than it may take.
    fn settle(&mut self, before: &[Option<u64>]) -> Phase<Vec<Memory>> {
        let begin = Instant::now();
        loop {
            self.look()?;
            let after = self.processes.memory();
            let memory: Vec<Memory> = ('a'..)
                .zip(before.iter().zip(&after))
                .filter_map(|(name, (before, after))| {
                    Some(Memory { member: name.to_string(), before: (*before)?, after: (*after)? })
                })
                .collect();
            let is_settled = judge::judge_memory(&memory, ALLOWANCE, Time(0)).is_empty();
            if is_settled || begin.elapsed() > SETTLING {
                return Ok(memory);
            }
        }
    }

    /// One member leaves, so that another view begins: the others keep nothing any more, as soon as the
    /// sessions of clients that were killed are over. Waits for that, no longer than it may take.
    fn forget(&mut self) -> Phase<Vec<InUse>> {
        let last = self.inside.options.layout().members - 1;
        self.log.say("all clients have gone, and one member leaves: the others forget all names");
        self.processes.end(Target::Member(last), Signal::TERM)?;
        let begin = Instant::now();
        loop {
            let next = Instant::now() + ASKING;
            while Instant::now() < next {
                self.look()?;
            }
            let in_use: Vec<InUse> =
                (0..last).map(|number| self.processes.in_use(number)).collect::<Result<_>>()?;
            let is_nothing = judge::judge_in_use(&in_use, Time(0)).is_empty();
            if is_nothing || begin.elapsed() > SETTLING {
                return Ok(in_use);
            }
        }
    }

    fn end_members(&mut self) -> Phase {
        self.processes.finish()?;
        let begin = Instant::now();
        while self.processes.members_run() {
            self.look()?;
            if begin.elapsed() > ENDING {
                self.log.say("a member that was told to end has not: it is killed");
                break;
            }
        }
        Ok(())
    }

    fn table(&mut self, faults: usize, violations: usize) {
        let histories = &self.processes.histories;
        let counts = judge::count(histories);
        let grown =
            self.memory.iter().map(|memory| memory.after.saturating_sub(memory.before) >> 20).max();
        let rows = [
            ("faults that were planned", faults.to_string()),
            ("operations", counts.asked.to_string()),
            ("grants", counts.granted.to_string()),
            ("refusals", counts.refused.to_string()),
            ("losses", counts.lost.to_string()),
            ("views", views(histories).to_string()),
            ("processes that ended by themselves", self.processes.ended_by_themselves.to_string()),
            ("longest wait after healing, s", format!("{:.1}", longest_wait(histories))),
            ("most memory gained by a member, MiB", grown.unwrap_or_default().to_string()),
            ("violations", violations.to_string()),
        ];
        let families = report::grants_by_family(histories);
        self.log.table(&rows);
        for (family, grants) in families {
            self.log.plain(&format!("  grants of {family:<29} {grants:>12}"));
        }
    }

    fn violated(&mut self, violations: &[Violation]) {
        self.log.violations(violations, &self.processes.histories);
        let command = self.inside.options.command();
        self.log.plain(&format!("\n{} violations; repeat with: {command}", violations.len()));
        let folder = self.inside.folder.display();
        self.log.plain(&format!("histories and logs of the members are in {folder}"));
    }
}

fn is_served(history: &History) -> bool {
    history.records.iter().any(|record| matches!(record.event, Event::Granted { .. }))
}

/// The longest time from asking to granting after healing, in seconds.
fn longest_wait(histories: &[History]) -> f64 {
    let mut longest = Duration::ZERO;
    for history in histories {
        let mut asked = std::collections::BTreeMap::new();
        for record in &history.records {
            match record.event {
                Event::Insisted => {
                    asked.insert(record.request, record.at);
                }
                Event::Granted { .. } => {
                    let since = asked.get(&record.request).map(|&at| record.at.since(at));
                    longest = longest.max(since.unwrap_or_default());
                }
                _ => {}
            }
        }
    }
    longest.as_secs_f64()
}
