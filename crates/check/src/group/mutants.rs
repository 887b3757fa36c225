//! Deliberately broken members, to show that the checker catches what it should.

use std::fmt;

use catraca_group::{MUTANTS, Turns};

use super::property;
use super::setting::{NextView, Setting};

/// A broken member, or a broken change of its view.
#[derive(Clone, Copy)]
pub struct Mutant {
    /// Its name.
    pub name: &'static str,
    /// The property that is found broken, one of [`property`].
    pub property: &'static str,
    how: How,
    /// What the group in which it is caught has that a usual one has not.
    adjust: fn(Setting) -> Setting,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// The queue in front of a lock.
    Lock,
    /// New instances begin as if nobody were inside.
    ForgetsHolders,
    /// Messages of an earlier view are taken for those of the present one.
    ListensToOldMessages,
}

impl fmt::Debug for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Mutant {
    const fn of_queue(name: &'static str, property: &'static str) -> Self {
        Mutant { name, property, how: How::Lock, adjust: |setting| setting }
    }

    const fn of_view(name: &'static str, property: &'static str, how: How) -> Self {
        Mutant { name, property, how, adjust: with_next_view }
    }

    const fn with(self, adjust: fn(Setting) -> Setting) -> Self {
        Mutant { adjust, ..self }
    }

    /// What is broken, in one sentence.
    pub fn breaks(&self) -> &'static str {
        match self.how {
            How::Lock => self.of_lock().map_or("", |mutant| mutant.breaks),
            How::ForgetsHolders => "instances of a new view begin as if nobody were inside",
            How::ListensToOldMessages => "messages of the view before are listened to",
        }
    }

    /// The smallest group of `algorithm` in which it is caught.
    pub fn setting(&'static self, algorithm: &str) -> Setting {
        let setting = (self.adjust)(Setting { cancels: 0, ..Setting::new(algorithm) });
        Setting { mutant: Some(self), ..setting }
    }

    pub(super) fn of_lock(&self) -> Option<&'static catraca_group::Mutant> {
        MUTANTS.iter().find(|mutant| self.how == How::Lock && mutant.name == self.name)
    }

    pub(super) fn forgets_holders(&self) -> bool {
        self.how == How::ForgetsHolders
    }

    pub(super) fn listens_to_old_messages(&self) -> bool {
        self.how == How::ListensToOldMessages
    }
}

fn with_next_view(setting: Setting) -> Setting {
    Setting { next_view: Some(NextView::Same), clients: 1, ..setting }
}

fn with_one_round(setting: Setting) -> Setting {
    Setting { turns: Turns { rounds: 1, ..setting.turns }, ..setting }
}

fn with_cancels(setting: Setting) -> Setting {
    Setting { cancels: 1, ..setting }
}

/// All of them.
pub const ALL: &[Mutant] = &[
    Mutant::of_queue("unbounded-handover", property::HANDOVERS_ARE_BOUNDED)
        .with(|setting| Setting { turns: Turns { handovers: 0, ..setting.turns }, ..setting }),
    Mutant::of_queue("handover-keeps-fence", property::FENCES_INCREASE),
    Mutant::of_queue("handover-counts-as-grant", property::FENCES_INCREASE),
    Mutant::of_queue("last-come-first-served", property::FIRST_COME_FIRST_SERVED),
    Mutant::of_queue("turn-grows-with-its-queue", property::TURNS_FOLLOW_QUEUES)
        .with(with_one_round),
    Mutant::of_queue("equal-turns", property::TURNS_FOLLOW_QUEUES).with(with_one_round),
    Mutant::of_queue("cancelled-stays", property::ONLY_WAITERS_ENTER).with(with_cancels),
    Mutant::of_queue("unwanted-grant-kept", property::NOBODY_WAITS_FOR_EVER).with(with_cancels),
    Mutant::of_queue("handed-over-and-released", property::NOBODY_WAITS_FOR_EVER),
    Mutant::of_queue("anybody-releases", property::ONLY_WAITERS_ENTER).with(with_cancels),
    Mutant::of_queue("fence-without-epoch", property::FENCES_ARE_PACKED).with(with_next_view),
    Mutant::of_view("holders-forgotten", property::MUTUAL_EXCLUSION, How::ForgetsHolders),
    Mutant::of_view("old-messages-heard", property::MUTUAL_EXCLUSION, How::ListensToOldMessages),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_broken_queue_is_listed_and_every_mutant_says_what_it_breaks() {
        for mutant in MUTANTS {
            assert!(ALL.iter().any(|it| it.how == How::Lock && it.name == mutant.name));
        }
        assert!(ALL.iter().all(|mutant| !mutant.breaks().is_empty()));
    }
}
