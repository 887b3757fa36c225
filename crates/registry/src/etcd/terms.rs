//! A transaction in etcd's terms, and its answer in ours.
//!
//! Keys of a group are behind its prefix. Both branches of a transaction read what an answer shows, so
//! that it is of the very revision of the transaction, whether or not that was carried out. The most
//! operations are 64 and three reads: etcd takes 128.

use catraca_group::registry::{HOLDS, LARGEST_PAGE};

use super::wire::{
    Compare, DeleteRequest, KeyValue, PutRequest, RangeRequest, RangeResponse, Relation, Request,
    RequestOp, Target, Than, TxnRequest, TxnResponse,
};
use crate::{Answer, Guard, Item, Op, Page, Revision, Txn};

/// The first key behind all keys of durable holds: '0' comes after '/'.
const BEHIND_HOLDS: &str = "hold0";

/// Where the keys of a group are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Prefix(String);

impl Prefix {
    /// The place of a group, whose name has no '/': else one group could be inside another.
    pub(super) fn of(group: &str) -> Self {
        Prefix(format!("catraca/{group}/"))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn key(&self, key: &str) -> Vec<u8> {
        [self.0.as_bytes(), key.as_bytes()].concat()
    }

    /// The first key behind the group: the prefix ends with '/', and '0' comes after it.
    pub(super) fn end(&self) -> Vec<u8> {
        [&self.0.as_bytes()[..self.0.len() - 1], b"0"].concat()
    }

    /// The key as the group knows it; `None` for what no member wrote.
    pub(super) fn strip(&self, key: &[u8]) -> Option<String> {
        let key = key.strip_prefix(self.0.as_bytes())?;
        String::from_utf8(key.to_vec()).ok()
    }

    /// The transaction as etcd is asked for it.
    pub(super) fn request(&self, txn: &Txn) -> TxnRequest {
        let changes = txn.ops.iter().map(|op| match op {
            Op::Put(key, value) => {
                Request::Put(PutRequest { key: self.key(key), value: value.clone(), lease: 0 })
            }
            Op::Delete(key) => Request::Delete(DeleteRequest { key: self.key(key) }),
        });
        let reads = self.reads(txn.page.as_ref());
        let op = |request| RequestOp { request: Some(request) };
        TxnRequest {
            compare: txn.guards.iter().map(|guard| self.compare(guard)).collect(),
            success: changes.chain(reads.iter().cloned()).map(op).collect(),
            failure: reads.into_iter().map(op).collect(),
        }
    }

    fn compare(&self, guard: &Guard) -> Compare {
        let (result, target, than) = match guard {
            Guard::Absent(_) => (Relation::Equal, Target::Create, Than::Create(0)),
            Guard::At(_, at) => match revision(*at) {
                Some(at) => (Relation::Equal, Target::Mod, Than::Mod(at)),
                None => NEVER,
            },
            Guard::Born(_, born) => match revision(*born) {
                Some(born) => (Relation::Equal, Target::Create, Than::Create(born)),
                None => NEVER,
            },
        };
        Compare {
            result: result.into(),
            target: target.into(),
            key: self.key(guard.key()),
            than: Some(than),
        }
    }

    /// Everything but the durable holds, and the page of those that is asked for.
    fn reads(&self, page: Option<&Page>) -> Vec<Request> {
        let range = |key, range_end| RangeRequest { key, range_end, ..RangeRequest::default() };
        let mut reads =
            vec![range(self.key(""), self.key(HOLDS)), range(self.key(BEHIND_HOLDS), self.end())];
        if let Some(Page { after, limit }) = page {
            let first = [self.key(after.as_str().max(HOLDS)), vec![0]].concat();
            let end = self.key(BEHIND_HOLDS);
            if first < end {
                // etcd takes 0 for 'all'. One is enough to know whether there are any.
                let limit = i64::from((*limit).clamp(1, LARGEST_PAGE));
                reads.push(RangeRequest { limit, ..range(first, end) });
            }
        }
        reads.into_iter().map(Request::Range).collect()
    }

    /// What etcd answered to a transaction; an error if that makes no sense.
    pub(super) fn answer(&self, txn: &Txn, response: TxnResponse) -> Result<Answer, String> {
        let header = response.header.ok_or("etcd's answer has no header")?;
        let mut reads = response.responses.into_iter().filter_map(|response| response.range);
        let mut read = || reads.next().ok_or("etcd's answer is shorter than the request");
        let (before, behind) = (read()?, read()?);
        let state = before.kvs.into_iter().chain(behind.kvs);
        let state = state.filter_map(|kv| self.item(kv)).collect();
        let page = reads.next().unwrap_or_default();
        let (holds, more) = self.page(txn.page.as_ref(), page);
        let applied = response.succeeded;
        Ok(Answer { revision: ours(header.revision), applied, state, holds, more })
    }

    fn page(&self, page: Option<&Page>, read: RangeResponse) -> (Vec<(String, Item)>, bool) {
        match page {
            None => (Vec::new(), false),
            Some(Page { limit: 0, .. }) => (Vec::new(), !read.kvs.is_empty()),
            Some(_) => (read.kvs.into_iter().filter_map(|kv| self.item(kv)).collect(), read.more),
        }
    }

    fn item(&self, kv: KeyValue) -> Option<(String, Item)> {
        let (born, at) = (ours(kv.create_revision), ours(kv.mod_revision));
        Some((self.strip(&kv.key)?, Item { born, at, value: kv.value }))
    }
}

/// What is never true: no key was created before revision 0.
const NEVER: (Relation, Target, Than) = (Relation::Less, Target::Create, Than::Create(0));

/// A revision at which a key can have been written. A key that is not there has revision 0 in etcd, but
/// is nowhere at all with us.
fn revision(revision: Revision) -> Option<i64> {
    i64::try_from(revision.0).ok().filter(|revision| *revision > 0)
}

/// etcd's revisions are never negative.
pub(super) fn ours(revision: i64) -> Revision {
    Revision(revision.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::super::wire::{Header, ResponseOp};
    use super::*;

    fn compare(result: Relation, target: Target, than: Than) -> Compare {
        let key = b"catraca/g/k".to_vec();
        Compare { result: result.into(), target: target.into(), key, than: Some(than) }
    }

    fn range(key: &str, end: &str, limit: i64) -> RequestOp {
        let (key, range_end) = (key.into(), end.into());
        let range = RangeRequest { key, range_end, limit, ..RangeRequest::default() };
        RequestOp { request: Some(Request::Range(range)) }
    }

    #[test]
    fn a_transaction_changes_and_reads_or_only_reads() {
        let txn = Txn::default().put("a", vec![1]).delete("b").with_page("hold/7", 5);
        let request = Prefix::of("g").request(&txn);
        let op = |request| RequestOp { request: Some(request) };
        let put = PutRequest { key: b"catraca/g/a".to_vec(), value: vec![1], lease: 0 };
        let delete = DeleteRequest { key: b"catraca/g/b".to_vec() };
        let reads = [
            range("catraca/g/", "catraca/g/hold/", 0),
            range("catraca/g/hold0", "catraca/g0", 0),
            range("catraca/g/hold/7\0", "catraca/g/hold0", 5),
        ];
        assert_eq!(request.success[..2], [op(Request::Put(put)), op(Request::Delete(delete))]);
        assert_eq!(request.success[2..], reads);
        assert_eq!(request.failure, reads);
    }

    #[test]
    fn guards_are_comparisons_of_revisions_and_of_none_that_a_missing_key_has() {
        let key = || "k".to_string();
        let never = compare(Relation::Less, Target::Create, Than::Create(0));
        for (guard, expected) in [
            (Guard::Absent(key()), compare(Relation::Equal, Target::Create, Than::Create(0))),
            (Guard::At(key(), Revision(7)), compare(Relation::Equal, Target::Mod, Than::Mod(7))),
            (
                Guard::Born(key(), Revision(7)),
                compare(Relation::Equal, Target::Create, Than::Create(7)),
            ),
            (Guard::At(key(), Revision(0)), never.clone()),
            (Guard::Born(key(), Revision(0)), never.clone()),
            (Guard::At(key(), Revision(u64::MAX)), never),
        ] {
            assert_eq!(Prefix::of("g").compare(&guard), expected, "{guard:?}");
        }
    }

    #[test]
    fn a_page_of_none_asks_for_one_and_a_page_behind_all_holds_for_nothing() {
        let prefix = Prefix::of("g");
        let none = Txn::read().with_page("", 0);
        let request = prefix.request(&none);
        assert_eq!(request.success[2], range("catraca/g/hold/\0", "catraca/g/hold0", 1));
        let kv = KeyValue { key: b"catraca/g/hold/1".to_vec(), ..KeyValue::default() };
        let found = RangeResponse { kvs: vec![kv], ..RangeResponse::default() };
        assert_eq!(prefix.page(none.page.as_ref(), found), (vec![], true));
        assert_eq!(prefix.request(&Txn::read().with_page("zone", 9)).success.len(), 2);
    }

    #[test]
    fn an_answer_without_its_parts_is_an_error() {
        let prefix = Prefix::of("g");
        assert!(prefix.answer(&Txn::read(), TxnResponse::default()).is_err());
        let header = Some(Header::default());
        let one = vec![ResponseOp { range: Some(RangeResponse::default()) }];
        let short = TxnResponse { header, succeeded: true, responses: one };
        assert!(prefix.answer(&Txn::read(), short).is_err());
    }

    #[test]
    fn the_largest_transaction_is_within_the_operations_that_etcd_takes() {
        let txn = (0..catraca_group::registry::MOST_TERMS)
            .fold(Txn::default().with_page("", 1), |txn, n| txn.delete(n.to_string()));
        assert!(Prefix::of("g").request(&txn).success.len() <= 128);
    }
}
