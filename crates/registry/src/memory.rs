//! A registry in the memory of this process: for a program that needs no other, and for tests.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, watch};

use crate::{Answering, Health, Registry, Revision, Store, Trouble, Txn, Word};

/// So many words wait for somebody who watches.
const WORDS: usize = 64;

/// A registry that lasts as long as its process. Clones are the same registry.
#[derive(Clone)]
pub struct Memory {
    store: Arc<Mutex<Store>>,
    changed: Arc<watch::Sender<Revision>>,
}

impl Default for Memory {
    fn default() -> Self {
        let (changed, _) = watch::channel(Revision(0));
        Memory { store: Arc::default(), changed: Arc::new(changed) }
    }
}

impl Memory {
    fn with<T>(&self, look: impl FnOnce(&mut Store) -> T) -> T {
        // A store is changed in one go at the end of a transaction.
        look(&mut self.store.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Registry for Memory {
    fn txn(&self, txn: Txn) -> Answering<'_> {
        Box::pin(async move {
            txn.check().map_err(|why| Trouble::Refused(why.to_string()))?;
            let answer = self.with(|store| store.check_room(&txn).map(|()| store.apply(&txn)));
            let answer = answer.map_err(Trouble::Refused)?;
            self.changed.send_if_modified(|revision| {
                let is_newer = *revision < answer.revision;
                *revision = (*revision).max(answer.revision);
                is_newer
            });
            Ok(answer)
        })
    }

    fn watch(&self, mut after: Revision) -> mpsc::Receiver<Word> {
        let (tell, words) = mpsc::channel(WORDS);
        let (memory, mut changed) = (self.clone(), self.changed.subscribe());
        tokio::spawn(async move {
            loop {
                changed.borrow_and_update();
                let news: Vec<Word> = memory.with(|store| store.changes(after).collect());
                for word in news {
                    after = match &word {
                        Word::Changed { at, .. } => *at,
                        Word::Gap { from } => *from,
                    };
                    if tell.send(word).await.is_err() {
                        return;
                    }
                }
                tokio::select! {
                    more = changed.changed() => if more.is_err() { return },
                    () = tell.closed() => return,
                }
            }
        });
        words
    }

    fn health(&self) -> Health {
        Health { place: "in memory".to_string(), ..Health::default() }
    }
}
