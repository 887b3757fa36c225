//! What can still happen from where a run is.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use catraca_algorithms::{Spec, SpecError, Visitor};
use catraca_core::Algorithm;
use catraca_core::property::NOBODY_WAITS_FOR_EVER;
use stateright::Model;

use crate::choice::{Choice, choices};
use crate::explore::Options;
use crate::memory;
use crate::model::GroupModel;
use crate::property;
use crate::search::{Counts, End, search};
use crate::survey::{Survey, survey};
use crate::walk::Walk;
use crate::world::World;

/// After how many states the clock and the memory are looked at.
const LOOK_EVERY: u64 = 256;

/// How far to look.
#[derive(Clone, Debug)]
pub struct Effort {
    /// The most states.
    pub states: u64,
    /// The longest time.
    pub time: Duration,
    /// The resident memory of the process, in bytes, past which it ends.
    pub memory: Option<u64>,
    /// It ends soon after this becomes true.
    pub stop: Arc<AtomicBool>,
    /// How many threads look for cycles.
    pub threads: usize,
}

/// Why something ended before all was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// So many states were seen.
    States(u64),
    /// So much time has passed.
    Time(Duration),
    /// The process has so much memory.
    Memory(u64),
    /// Somebody stopped it.
    Stopped,
}

/// What can still happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// Different states that can follow, this one included.
    pub states: u64,
    /// Steps between them.
    pub steps: u64,
    /// Steps to the farthest of them.
    pub depth: usize,
    /// States in which nothing can happen any more.
    pub ends: u64,
    /// Those of them in which somebody waits.
    pub stuck: u64,
    /// States that break a property. Nothing that follows them is counted.
    pub broken: u64,
    /// A shortest way to break a property, or to wait for ever; none was found, if there is none.
    pub breach: Option<Breach>,
    /// By node, a shortest way to its next entry.
    pub entries: Vec<Option<Vec<Choice>>>,
    /// Why not everything was seen. With a bound, what was not found may exist all the same.
    pub bound: Option<Bound>,
    /// Whether everything was looked through for runs in which somebody waits for ever.
    pub looked_for_cycles: bool,
}

/// How something breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The property's name, one of those in [`catraca_core::property`].
    pub property: &'static str,
    /// What is wrong, in words.
    pub what: String,
    /// The steps from here to there.
    pub steps: Vec<Choice>,
    /// How many steps at the end can repeat for ever, where that is what is wrong.
    pub repeats: Option<usize>,
}

/// Explores what can follow after `taken`, which are steps that are possible one after the other; what
/// comes after one that is not is left out.
pub fn outlook(
    spec: &Spec,
    options: &Options,
    taken: &[Choice],
    effort: &Effort,
) -> Result<Outlook, SpecError> {
    spec.visit(Look { spec, options, taken, effort })
}

struct Look<'a> {
    spec: &'a Spec,
    options: &'a Options,
    taken: &'a [Choice],
    effort: &'a Effort,
}

impl Visitor for Look<'_> {
    type Output = Outlook;

    fn visit<A: Algorithm>(self, config: A::Config) -> Outlook {
        let mut model = GroupModel::<A>::of(config, self.spec, self.options);
        let mut walk = Walk::new(&model);
        for step in self.taken {
            let possible = choices(&model, &walk.world);
            let Some((_, chosen)) = possible.iter().find(|(it, _)| it == step) else { break };
            walk.take(*chosen);
        }
        let here = walk.world;
        let began = Instant::now();
        let mut asked = 0;
        let mut goes_on = |states: u64| {
            asked += 1;
            self.effort.bound(states, began, asked % LOOK_EVERY == 1)
        };
        let survey = survey(&model, here.clone(), &mut goes_on);
        model.begin = Some(here);
        let mut outlook = summed_up(&model, &survey);
        if outlook.bound.is_none() && outlook.broken == 0 {
            self.look_for_cycles(&model, &mut outlook, began);
        }
        outlook
    }
}

impl Look<'_> {
    /// Where nothing is broken at any one state, somebody may still wait for ever in a run without end.
    fn look_for_cycles<A: Algorithm>(
        &self,
        model: &GroupModel<A>,
        outlook: &mut Outlook,
        began: Instant,
    ) {
        let mut pulse = |counts: &Counts| {
            // The states are known to be few enough.
            let states = counts.states.min(self.effort.states);
            match self.effort.bound(states, began, true) {
                Some(bound) => ControlFlow::Break(bound),
                None => ControlFlow::Continue(()),
            }
        };
        let (_, end) = search(model, self.effort.threads, &mut pulse);
        match end {
            End::Exhausted | End::Violated { .. } => outlook.looked_for_cycles = true,
            End::Stopped(bound) => outlook.bound = Some(bound),
            End::Lasting { path, cycle } => {
                outlook.looked_for_cycles = true;
                // The path begins with the choice of the first world, and there is only one.
                let whole: Vec<usize> = path[1..].iter().chain(&cycle).copied().collect();
                let (steps, world) = named(model, &whole);
                let taken = self.taken.len() as u64;
                let first = taken + path.len() as u64;
                let repeated = first..=taken + whole.len() as u64;
                outlook.breach = Some(Breach {
                    property: NOBODY_WAITS_FOR_EVER,
                    what: property::explain_cycle(&world, repeated),
                    steps,
                    repeats: Some(cycle.len()),
                });
            }
        }
    }
}

impl Effort {
    /// Which bound has been reached.
    fn bound(&self, states: u64, began: Instant, looks: bool) -> Option<Bound> {
        if states > self.states {
            return Some(Bound::States(self.states));
        }
        if !looks {
            return None;
        }
        if self.stop.load(Ordering::Relaxed) {
            return Some(Bound::Stopped);
        }
        if began.elapsed() > self.time {
            return Some(Bound::Time(self.time));
        }
        let used = memory::resident().filter(|used| self.memory.is_some_and(|most| *used > most));
        used.map(Bound::Memory)
    }
}

fn summed_up<A: Algorithm>(model: &GroupModel<A>, survey: &Survey<Bound>) -> Outlook {
    let breach = survey.violation.as_ref().map(|(property, way)| {
        let (steps, world) = named(model, way);
        let what = property::explain(property, model, &world).err().unwrap_or_default();
        Breach { property, what, steps, repeats: None }
    });
    let way = |way: &Option<Vec<usize>>| way.as_ref().map(|way| named(model, way).0);
    Outlook {
        states: survey.states,
        steps: survey.generated - 1,
        depth: survey.depth,
        ends: survey.ends,
        stuck: survey.stuck,
        broken: survey.broken,
        breach,
        entries: survey.entries.iter().map(way).collect(),
        bound: survey.bound,
        looked_for_cycles: false,
    }
}

/// The names of the steps that `way` takes from where the model begins, and where they lead.
fn named<A: Algorithm>(model: &GroupModel<A>, way: &[usize]) -> (Vec<Choice>, World<A>) {
    let mut world = model.begin.clone().unwrap_or_else(|| model.first_world());
    let mut steps = Vec::new();
    for &choice in way {
        let (name, chosen) = choices(model, &world).swap_remove(choice);
        steps.push(name);
        if let Some(next) = model.next_state(&world, chosen) {
            world = next;
        }
    }
    (steps, world)
}
