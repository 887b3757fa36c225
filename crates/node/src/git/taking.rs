//! Taking locks: at once, or when they are free.
//!
//! A lock is a durable hold, which the group's algorithm grants and the registry keeps. So there is one
//! winner, at whichever nodes the others ask. What the index says is only used to answer sooner.

use std::sync::Arc;
use std::time::Duration;

use catraca_group::{AcquireDurable, DurableHold, HoldId, Refusal, Target, Unlock, Wait};

use super::Git;
use super::answer::Refused;
use super::lock::{Lock, Said};
use super::path::LockPath;
use super::repository::Repository;
use crate::http::problem::Kind;
use crate::secret::secret;

/// A lock that was just released may not be free everywhere yet: it is waited for so long.
const SETTLING: Duration = Duration::from_secs(3);
/// So often a request is repeated of which nobody knows what came of it.
const TRIES: usize = 3;

/// A lock that somebody wants.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) repository: Repository,
    pub(crate) path: LockPath,
    pub(crate) owner: String,
    /// What the owner has to say about it.
    pub(crate) note: String,
    /// With which others it is taken.
    pub(crate) set: Option<String>,
}

impl Wanted {
    /// The request for it. Each one has another name, so asking again is another request.
    pub(super) fn asked(&self, wait: Wait) -> Result<AcquireDurable, Refused> {
        let (path, note) = (self.path.given.clone(), self.note.clone());
        let said = Said { path, note, set: self.set.clone(), stolen_from: Vec::new() };
        let note = said.text().ok_or_else(|| {
            let detail = "the path and the note do not fit: together they have at most 950 bytes";
            Refused::new(Kind::BadRequest, "long-note", detail)
        })?;
        Ok(AcquireDurable {
            names: vec![self.path.name.clone()],
            permits: 1,
            wait,
            owner: self.owner.clone(),
            note,
            request: random_name(),
        })
    }
}

/// A name that nobody else gives.
pub(super) fn random_name() -> String {
    HoldId(u128::from_be_bytes(secret())).to_string()
}

impl Git {
    /// Takes a lock, if nobody has it.
    pub(crate) async fn take(&self, wanted: &Wanted) -> Result<Arc<Lock>, Refused> {
        if let Some(lock) = self.holder(wanted).await? {
            return Err(Refused::taken(&lock, &wanted.owner));
        }
        match self.acquire(wanted.asked(Wait::no())?).await {
            Err(Refusal::Taken | Refusal::OtherHolder(_) | Refusal::TimedOut) => {}
            taken => return self.granted(taken?),
        }
        self.following.fresh().await?;
        if let Some(lock) = self.known(wanted) {
            return Err(Refused::taken(&lock, &wanted.owner));
        }
        // Nobody has it, but not all members know that yet; or it is held by other means.
        self.take_within(wanted, SETTLING).await
    }

    /// Takes a lock, and waits for so long until it is free.
    async fn take_within(&self, wanted: &Wanted, wait: Duration) -> Result<Arc<Lock>, Refused> {
        self.take_asked(wanted, wanted.asked(Wait::AtMost(wait))?).await
    }

    /// Takes a lock by this request for it.
    pub(crate) async fn take_asked(
        &self,
        wanted: &Wanted,
        asked: AcquireDurable,
    ) -> Result<Arc<Lock>, Refused> {
        match self.acquire(asked).await {
            Err(Refusal::Taken | Refusal::OtherHolder(_) | Refusal::TimedOut) => {}
            taken => return self.granted(taken?),
        }
        self.following.fresh().await?;
        Err(match self.known(wanted) {
            Some(lock) => Refused::taken(&lock, &wanted.owner),
            None => {
                let detail = format!(
                    "somebody is taking '{}' at this moment, or holds it by other means: see /v1/locks?name={}",
                    wanted.path.given, wanted.path.name
                );
                Refused::new(Kind::Taken, "taken", detail)
            }
        })
    }

    /// Asks for a hold. If nobody can say what came of that, asking again finds it out.
    pub(super) async fn acquire(&self, asked: AcquireDurable) -> Result<DurableHold, Refusal> {
        let mut tries = 1;
        loop {
            match self.gateway.acquire_for_git(asked.clone(), &asked.owner).await {
                Err(Refusal::Unsure) if tries < TRIES => tries += 1,
                answer => return answer,
            }
        }
    }

    /// Nobody wants any more what was asked for: if it was granted meanwhile, it is given back.
    pub(crate) async fn forget(&self, asked: AcquireDurable) {
        // Asking again in the same way finds a hold that is being written.
        let asked = AcquireDurable { wait: Wait::no(), ..asked };
        if let Ok(hold) = self.acquire(asked).await {
            self.give_back(hold.id).await;
        }
    }

    /// Releases what nobody is to have.
    pub(super) async fn give_back(&self, id: HoldId) {
        let unlock = Unlock { target: Target::Id(id), owner: None };
        if let Err(error) = self.gateway.unlock_for_git(unlock).await
            && !matches!(error, Refusal::NoSuchHold(_))
        {
            tracing::warn!(%error, %id, "a lock that nobody wants is still there");
        }
    }

    pub(super) fn granted(&self, hold: DurableHold) -> Result<Arc<Lock>, Refused> {
        let lock = self.following.locks_of(&hold).into_iter().next();
        // A hold that was asked for here has the name of a lock.
        lock.map(Arc::new).ok_or_else(|| Refusal::NoSuchHold(hold.id.to_string()).into())
    }

    /// Who has the lock, as far as the index knows: that may have changed.
    fn known(&self, wanted: &Wanted) -> Option<Arc<Lock>> {
        self.following.look(|index| index.by_path(&wanted.repository, &wanted.path.folded))
    }

    /// Who has the lock for certain; if the index does not know, nobody or somebody.
    async fn holder(&self, wanted: &Wanted) -> Result<Option<Arc<Lock>>, Refused> {
        match self.known(wanted) {
            Some(lock) => self.confirmed(&wanted.repository, lock.id).await,
            None => Ok(None),
        }
    }

    /// The lock with this id, if it is there: the registry says so, and not the index.
    pub(crate) async fn confirmed(
        &self,
        repository: &Repository,
        id: HoldId,
    ) -> Result<Option<Arc<Lock>>, Refused> {
        match self.gateway.durable(Target::Id(id)).await {
            Ok(hold) => {
                let mut locks = self.following.locks_of(&hold).into_iter();
                Ok(locks.find(|lock| lock.repository == *repository).map(Arc::new))
            }
            Err(Refusal::NoSuchHold(_)) => Ok(None),
            Err(refusal) => Err(refusal.into()),
        }
    }
}
