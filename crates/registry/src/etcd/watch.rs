//! Tells of changes, over as many connections as it takes.
//!
//! Words are told in whole revisions, and the next connection goes on behind the last whole one: so
//! nothing is told twice or left out. Old revisions that etcd has compacted are a gap.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::cluster::{Cluster, patience};
use super::fault::Fault;
use super::link::{Link, method};
use super::terms::ours;
use super::wire::{WatchCreate, WatchRequest, WatchResponse};
use crate::{Revision, Word};

/// How long to wait before the next try, if there is nobody to listen to.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Somebody who watches.
pub(super) struct Watcher {
    cluster: Arc<Cluster>,
    /// All up to this revision has been told.
    after: Revision,
    tell: mpsc::Sender<Word>,
}

/// Nobody listens any more.
struct Gone;

impl Watcher {
    pub(super) fn new(cluster: Arc<Cluster>, after: Revision, tell: mpsc::Sender<Word>) -> Self {
        Watcher { cluster, after, tell }
    }

    /// Tells until nobody listens.
    pub(super) async fn run(mut self) {
        let tell = self.tell.clone();
        tokio::select! {
            () = tell.closed() => {}
            Gone = self.go_on() => {}
        }
    }

    async fn go_on(&mut self) -> Gone {
        let mut pause = PAUSE;
        loop {
            let told = self.after;
            if let Ok(link) = self.cluster.link(patience(&self.cluster)).await {
                match self.listen(&link).await {
                    Ok(gone) => return gone,
                    // Only who asks has to prove it anew; the member is as good as any.
                    Err(Fault::Stale(_)) => self.cluster.drop_link(&link, false),
                    Err(_) => self.cluster.drop_link(&link, true),
                }
            }
            pause = if self.after > told { PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
            tokio::time::sleep(pause).await;
        }
    }

    /// Listens on one connection until it breaks.
    async fn listen(&mut self, link: &Link) -> Result<Gone, Fault> {
        loop {
            let request = WatchRequest { create: Some(self.create()), cancel: None };
            let until = patience(&self.cluster);
            let mut stream = link.listen(method::WATCH, request, until).await?;
            let mut words = Words { after: self.after, ..Words::default() };
            loop {
                let response: WatchResponse = tokio::select! {
                    response = stream.message() => match response {
                        Ok(Some(response)) => response,
                        Ok(None) => return Err(Fault::NotDone("the watch ended".to_string())),
                        Err(status) => return Err(super::fault::of_status(&status)),
                    },
                    () = link.until_given_up() => {
                        return Err(Fault::NotDone("the connection was given up".to_string()));
                    }
                };
                let (is_over, reason) = (response.canceled, response.cancel_reason.clone());
                let compacted = response.compact_revision;
                let strip = |key: &[u8]| self.cluster.prefix.strip(key);
                for word in words.take(response, strip) {
                    if self.tell.send(word).await.is_err() {
                        return Ok(Gone);
                    }
                }
                self.after = words.after;
                if is_over && compacted > 0 {
                    break;
                }
                if is_over {
                    return Err(Fault::Stale(reason));
                }
            }
        }
    }

    fn create(&self) -> WatchCreate {
        WatchCreate {
            key: self.cluster.prefix.key(""),
            range_end: self.cluster.prefix.end(),
            // From the last revision that was told, not from the one behind it. etcd before late 2024
            // forgets deletions of the very revision that it compacts to, and tells nobody who begins
            // there; who begins before it gets a gap.
            start_revision: i64::try_from(self.after.0).unwrap_or(i64::MAX).max(1),
            // A group in which nothing happens gets no gap only because others are busy.
            progress_notify: true,
            fragment: true,
        }
    }
}

/// What is told of one stream.
#[derive(Default)]
struct Words {
    after: Revision,
    /// Parts of an answer whose rest is still to come.
    waiting: Vec<Word>,
}

impl Words {
    /// What can be told now.
    fn take(
        &mut self,
        response: WatchResponse,
        strip: impl Fn(&[u8]) -> Option<String>,
    ) -> Vec<Word> {
        if response.compact_revision > 0 {
            self.waiting.clear();
            let from = ours(response.compact_revision).max(self.after);
            self.after = from;
            return vec![Word::Gap { from }];
        }
        let is_progress = response.events.is_empty() && !response.created && !response.canceled;
        for kv in response.events.into_iter().filter_map(|event| event.kv) {
            let at = ours(kv.mod_revision);
            if at > self.after
                && let Some(key) = strip(&kv.key)
            {
                self.waiting.push(Word::Changed { key, at });
            }
        }
        if response.fragment {
            return Vec::new();
        }
        if let Some(Word::Changed { at, .. }) = self.waiting.last() {
            self.after = *at;
        } else if let Some(header) = response.header.filter(|_| is_progress) {
            self.after = self.after.max(ours(header.revision));
        }
        std::mem::take(&mut self.waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::{Event, Header, KeyValue};
    use super::*;

    fn response(events: &[(&str, i64)], fragment: bool) -> WatchResponse {
        let event = |&(key, mod_revision): &(&str, i64)| {
            let key = key.as_bytes().to_vec();
            Event { kind: 0, kv: Some(KeyValue { key, mod_revision, ..KeyValue::default() }) }
        };
        let header = Some(Header { revision: 50, ..Header::default() });
        let events = events.iter().map(event).collect();
        WatchResponse { header, events, fragment, ..WatchResponse::default() }
    }

    fn take(words: &mut Words, response: WatchResponse) -> Vec<(String, u64)> {
        let strip = |key: &[u8]| String::from_utf8(key.to_vec()).ok();
        let told = words.take(response, strip).into_iter();
        told.map(|word| match word {
            Word::Changed { key, at } => (key, at.0),
            Word::Gap { from } => ("gap".to_string(), from.0),
        })
        .collect()
    }

    #[test]
    fn what_was_told_is_not_told_again() {
        let mut words = Words { after: Revision(7), ..Words::default() };
        let told = take(&mut words, response(&[("a", 7), ("b", 8), ("c", 8)], false));
        assert_eq!(told, [("b".to_string(), 8), ("c".to_string(), 8)]);
        assert_eq!(words.after, Revision(8));
    }

    #[test]
    fn parts_of_an_answer_are_told_when_it_is_whole() {
        let mut words = Words::default();
        assert!(take(&mut words, response(&[("a", 7)], true)).is_empty());
        assert_eq!(words.after, Revision(0));
        let told = take(&mut words, response(&[("b", 7)], false));
        assert_eq!(told, [("a".to_string(), 7), ("b".to_string(), 7)]);
        assert_eq!(words.after, Revision(7));
    }

    #[test]
    fn progress_moves_on_and_the_beginning_of_a_watch_does_not() {
        let mut words = Words { after: Revision(7), ..Words::default() };
        let created = WatchResponse { created: true, ..response(&[], false) };
        assert!(take(&mut words, created).is_empty());
        assert_eq!(words.after, Revision(7));
        assert!(take(&mut words, response(&[], false)).is_empty());
        assert_eq!(words.after, Revision(50));
    }

    #[test]
    fn compaction_is_a_gap() {
        let mut words = Words { after: Revision(7), ..Words::default() };
        let compacted =
            WatchResponse { canceled: true, compact_revision: 20, ..response(&[], false) };
        assert_eq!(take(&mut words, compacted), [("gap".to_string(), 20)]);
        assert_eq!(words.after, Revision(20));
    }
}
