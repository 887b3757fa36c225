//! The members of etcd as one: whoever answers is asked, and it must be the etcd that it was.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};
use tonic::transport::{Certificate, ClientTlsConfig, Identity};

use super::fault::Fault;
use super::link::{Link, method};
use super::options::{Options, Password, Tls};
use super::terms::Prefix;
use super::wire::{Header, RangeRequest, RangeResponse, TxnRequest, TxnResponse};
use crate::Trouble;

/// The members of etcd, and what is known of them.
pub(super) struct Cluster {
    pub(super) options: Options,
    pub(super) prefix: Prefix,
    pub(super) tls: Option<ClientTlsConfig>,
    /// Held by whoever makes a connection: the others wait for that one.
    connecting: tokio::sync::Mutex<()>,
    inner: Mutex<Inner>,
    /// Something went wrong, or right again.
    pub(super) turned: Notify,
}

#[derive(Default)]
struct Inner {
    link: Option<Arc<Link>>,
    /// Who is asked next, as a position among the endpoints.
    next: usize,
    cluster_id: Option<u64>,
    /// The latest revision that was seen. It cannot go back.
    revision: i64,
    lost: Option<String>,
    /// What became of the last transaction, if that was not good.
    trouble: Option<String>,
    /// There is a user, but etcd does not ask for one.
    is_open: bool,
}

/// What the last calls brought, for people.
pub(super) struct Experience {
    pub(super) trouble: Option<String>,
    pub(super) is_open: bool,
    pub(super) revision: i64,
}

impl Cluster {
    /// Reads the certificates; connects to nobody.
    pub(super) fn new(options: Options) -> Result<Self, Trouble> {
        options.check().map_err(|error| Trouble::Refused(error.to_string()))?;
        let tls = options.tls.as_ref().map(certificates).transpose().map_err(Trouble::Refused)?;
        Ok(Cluster {
            prefix: Prefix::of(&options.group),
            options,
            tls,
            connecting: tokio::sync::Mutex::default(),
            inner: Mutex::default(),
            turned: Notify::new(),
        })
    }

    /// Has a transaction carried out. A write is sent once; what surely was not done is tried at every
    /// member.
    pub(super) async fn txn(
        &self,
        request: TxnRequest,
        is_read: bool,
    ) -> Result<TxnResponse, Trouble> {
        let outcome = self.try_members(&request, is_read).await.map_err(Trouble::from);
        let trouble = outcome.as_ref().err().map(ToString::to_string);
        let mut inner = self.inner();
        if inner.trouble.is_some() != trouble.is_some() {
            self.turned.notify_one();
        }
        inner.trouble = trouble;
        outcome
    }

    async fn try_members(&self, request: &TxnRequest, is_read: bool) -> Result<TxnResponse, Fault> {
        let deadline = Instant::now() + self.options.timeout;
        let members = self.options.endpoints.len();
        let mut faults = Vec::new();
        // A connection from earlier may have died since: that is no member's only chance.
        let mut left = members + usize::from(self.link_at_hand().is_some());
        while left > 0 {
            if left == members {
                // What an old connection had to say counts less than what members say now.
                faults.clear();
            }
            let until = share(deadline, left);
            left -= 1;
            let link = match self.link(until).await {
                Ok(link) => link,
                Err(fault) => {
                    faults.push(fault);
                    continue;
                }
            };
            let floor = self.inner().revision;
            let until = if is_read { until } else { deadline };
            let called = link.call(method::TXN, request.clone(), until).await;
            let checked = called.and_then(|answer: TxnResponse| {
                self.accept(answer.header.as_ref(), floor).map(|()| answer)
            });
            let fault = match checked {
                Ok(answer) => return Ok(answer),
                Err(fault) if is_read => self.explain(fault.of_read()),
                Err(fault) => self.explain(fault),
            };
            match fault {
                Fault::Refused(_) => return Err(fault),
                Fault::Stale(_) => self.drop_link(&link, false),
                Fault::NotDone(_) => self.drop_link(&link, true),
                Fault::Unknown(_) | Fault::Lost(_) => {
                    self.drop_link(&link, true);
                    return Err(fault);
                }
            }
            faults.push(fault);
        }
        Err(sum(faults))
    }

    /// A connection to a member that is known to be of this etcd, and has a quorum.
    pub(super) async fn link(&self, until: Instant) -> Result<Arc<Link>, Fault> {
        if let Some(link) = self.link_at_hand() {
            return Ok(link);
        }
        let late = || Fault::NotDone("no connection in time".to_string());
        let _turn = timeout_at(until, self.connecting.lock()).await.map_err(|_| late())?;
        if let Some(link) = self.link_at_hand() {
            return Ok(link);
        }
        let (next, floor, lost) = {
            let inner = self.inner();
            (inner.next, inner.revision, inner.lost.clone())
        };
        if let Some(why) = lost {
            return Err(Fault::Lost(why));
        }
        let entered = self.enter(next, floor, until).await;
        let mut inner = self.inner();
        match entered {
            Ok(link) => Ok(Arc::clone(inner.link.insert(Arc::new(link)))),
            Err(fault) => {
                inner.next = (next + 1) % self.options.endpoints.len();
                drop(inner);
                Err(self.explain(fault))
            }
        }
    }

    /// Connects, proves who asks, and looks at who answers. The look is a linearizable read: a member
    /// without a quorum cannot answer it, so no write is sent to one.
    async fn enter(&self, member: usize, floor: i64, until: Instant) -> Result<Link, Fault> {
        let endpoint = &self.options.endpoints[member];
        let mut link = Link::open(endpoint, self.tls.as_ref(), until).await?;
        if let Some(user) = &self.options.user {
            let password = password(&user.password)?;
            let proved = link.authenticate(&user.name, password, until).await;
            let is_open = is_open(&proved);
            self.inner().is_open = is_open;
            if !is_open {
                proved?;
            }
        }
        let look = RangeRequest {
            key: self.prefix.key(""),
            range_end: self.prefix.end(),
            limit: 1,
            keys_only: true,
            ..RangeRequest::default()
        };
        let answer: RangeResponse = match link.call(method::RANGE, look, until).await {
            Ok(answer) => answer,
            // The proof was just given. If there is none to give, no other try helps.
            Err(Fault::Stale(said)) if self.options.user.is_none() => {
                return Err(Fault::Refused(format!(
                    "{said}. This etcd wants a user: write 'etcd://user@host'"
                )));
            }
            Err(fault) => return Err(fault.of_first_call()),
        };
        self.accept(answer.header.as_ref(), floor).map_err(|fault| fault.at(&link.endpoint))?;
        Ok(link)
    }

    /// Whether an answer comes from the etcd that it was, at a revision that is not before `floor`.
    fn accept(&self, header: Option<&Header>, floor: i64) -> Result<(), Fault> {
        let nonsense = || Fault::Unknown("etcd's answer has no header".to_string());
        let header = header.ok_or_else(nonsense)?;
        let mut inner = self.inner();
        let known = *inner.cluster_id.get_or_insert(header.cluster_id);
        if header.cluster_id != known {
            return Err(Fault::Lost(format!(
                "this is etcd cluster {:x}, and the registry is in cluster {known:x}",
                header.cluster_id
            )));
        }
        if header.revision < floor {
            let why = format!(
                "etcd went back from revision {floor} to {}: it was emptied, or restored from a backup",
                header.revision
            );
            inner.lost = Some(why.clone());
            return Err(Fault::Lost(why));
        }
        inner.revision = inner.revision.max(header.revision);
        Ok(())
    }

    /// Says what to do where etcd is terse.
    fn explain(&self, fault: Fault) -> Fault {
        match fault {
            Fault::Refused(said) if said.ends_with("denies permission") => {
                let prefix = self.prefix.as_str();
                let name = self.options.user.as_ref().map_or("the user", |user| &user.name);
                Fault::Refused(format!(
                    "{said}: '{name}' needs a role that may read and write all keys of the group \
                     ('etcdctl role grant-permission ROLE --prefix=true readwrite {prefix}')"
                ))
            }
            other => other,
        }
    }

    /// Lets a connection go, if it is the one in use, and turns to the next member if that is better.
    pub(super) fn drop_link(&self, link: &Arc<Link>, turn_away: bool) {
        link.give_up();
        let mut inner = self.inner();
        if inner.link.take_if(|current| Arc::ptr_eq(current, link)).is_some() && turn_away {
            inner.next = (inner.next + 1) % self.options.endpoints.len();
        }
    }

    pub(super) fn link_at_hand(&self) -> Option<Arc<Link>> {
        self.inner().link.clone()
    }

    pub(super) fn experience(&self) -> Experience {
        let inner = self.inner();
        let (trouble, is_open) = (inner.trouble.clone(), inner.is_open);
        Experience { trouble, is_open, revision: inner.revision }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Every change is one assignment.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The part of the time until the deadline for the first of so many tries.
fn share(deadline: Instant, tries: usize) -> Instant {
    let now = Instant::now();
    let left = deadline.saturating_duration_since(now);
    now + left / u32::try_from(tries).unwrap_or(u32::MAX).max(1)
}

/// What several members said. Only if all agree is it final.
fn sum(faults: Vec<Fault>) -> Fault {
    let all = |is: fn(&Fault) -> bool| !faults.is_empty() && faults.iter().all(is);
    let mut texts: Vec<&str> = faults.iter().map(Fault::text).collect();
    texts.dedup();
    let text = texts.join("; ");
    if all(|fault| matches!(fault, Fault::Refused(_))) {
        Fault::Refused(text)
    } else if all(|fault| matches!(fault, Fault::Lost(_))) {
        Fault::Lost(text)
    } else {
        Fault::NotDone(text)
    }
}

/// Whether etcd does not know users at all. Like its own tools we go on then.
fn is_open(proved: &Result<(), Fault>) -> bool {
    matches!(proved, Err(fault) if fault.text().contains("authentication is not enabled"))
}

fn certificates(tls: &Tls) -> Result<ClientTlsConfig, String> {
    let read = |path: &std::path::Path| {
        std::fs::read(path).map_err(|error| format!("cannot read '{}': {error}", path.display()))
    };
    // The library takes a file without certificates for one that trusts nobody.
    let ca = read(&tls.ca)?;
    if !ca.windows(10).any(|window| window == b"-----BEGIN") {
        return Err(format!("'{}' has no certificate in PEM format", tls.ca.display()));
    }
    let config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(ca));
    match &tls.identity {
        Some((cert, key)) => Ok(config.identity(Identity::from_pem(read(cert)?, read(key)?))),
        None => Ok(config),
    }
}

fn password(password: &Password) -> Result<String, Fault> {
    match password {
        Password::Given(password) => Ok(password.clone()),
        Password::Variable(name) => std::env::var(name).map_err(|_| {
            Fault::Refused(format!("the password for etcd is expected in the variable '{name}'"))
        }),
        Password::File(path) => {
            let text = std::fs::read_to_string(path).map_err(|error| {
                let path = path.display();
                Fault::Refused(format!("cannot read the password for etcd in '{path}': {error}"))
            })?;
            Ok(text.strip_suffix('\n').unwrap_or(&text).to_string())
        }
    }
}

/// The longest that anything takes that nobody asked for.
pub(super) fn patience(cluster: &Cluster) -> Instant {
    Instant::now() + cluster.options.timeout.max(Duration::from_millis(100))
}
