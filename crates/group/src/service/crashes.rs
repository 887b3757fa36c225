//! What the failure detector finds, and what follows.

use alloc::vec::Vec;

use super::{Host, Output, Service};
use crate::detector::Findings;
use crate::lock::Owner;
use crate::refusal::Refusal;
use crate::request::{Origin, RequestId, State};
use crate::session::Over;

impl Service {
    /// Does what the detector asks for.
    pub(super) fn act_on(
        &mut self,
        findings: Findings,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let suspects = |member: &usize| {
            self.detector.as_ref().is_some_and(|detector| detector.suspects.contains_key(member))
        };
        for (member, bytes) in findings.sent {
            // Tests of a member that has crashed must not pile up.
            if self.peers[member].is_up || !suspects(&member) {
                out.push(Output::Detect(member, bytes));
            }
        }
        for crashed in findings.crashed {
            out.push(Output::Suspected(crashed));
            host.step_all(&mut |shard, outputs| shard.suspect(crashed, outputs));
        }
        if let Some(by) = findings.excluded_by
            && self.excluded_by.is_none()
        {
            self.excluded_by = Some(by);
            self.exclude(by, host, out);
        }
        out.extend(findings.anomalies.into_iter().map(Output::Anomaly));
    }

    /// The others go on without this member: what it has granted under algorithms that rely on the
    /// detector may be given to somebody else now.
    fn exclude(&mut self, by: usize, host: &mut dyn Host, out: &mut Vec<Output>) {
        out.push(Output::Excluded(by));
        let Some(why) = self.exclusion() else { return };
        host.step_all(&mut |shard, outputs| shard.exclude(&why, outputs));
        self.absorb(host, out);
        let view = &self.view;
        let lost: Vec<(RequestId, Origin)> = self
            .requests
            .iter()
            .filter(|(_, request)| matches!(request.state, State::Held(_)) && request.listens(view))
            .map(|(&id, request)| (id, request.origin))
            .collect();
        for (id, origin) in lost {
            match origin {
                // Groups with a registry do not run a detector.
                Origin::Durable(_) => {}
                Origin::Program => out.push(Output::Lost(id)),
                Origin::Session(owner, _) | Origin::Timed(owner) => {
                    self.end(owner, Over::Excluded(why.clone()), host, out);
                }
            }
        }
    }

    /// Why locks whose algorithms rely on the detector are not granted, if the others go on without
    /// this member.
    pub fn exclusion(&self) -> Option<Refusal> {
        let by = &self.view.members[self.excluded_by?].name;
        Some(Refusal::Excluded(by.clone()))
    }

    /// Whether a session is open.
    pub fn is_open(&self, owner: Owner) -> bool {
        self.sessions.contains_key(&owner)
    }
}
