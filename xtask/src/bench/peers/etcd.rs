//! Locks on etcd, as its own tool and its library for Go take them.
//!
//! A key with the client's lease stands for its place in the queue; the revision of its creation is the
//! order. Whoever is not the first waits until the one before is deleted.

use anyhow::{Context, Result, bail};
use catraca_registry::etcd::wire::{
    Compare, DeleteRequest, DeleteResponse, Event, LeaseGrantRequest, LeaseGrantResponse,
    PutRequest, RangeRequest, RangeResponse, Relation, Request, RequestOp, Target, Than,
    TxnRequest, TxnResponse, WatchCancel, WatchCreate, WatchRequest, WatchResponse,
};
use http::uri::PathAndQuery;
use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request as Call, Streaming};
use tonic_prost::ProstCodec;

use super::load::{Contender, Service};
use super::server::{Servers, address};

const RANGE: &str = "/etcdserverpb.KV/Range";
const TXN: &str = "/etcdserverpb.KV/Txn";
const DELETE: &str = "/etcdserverpb.KV/DeleteRange";
const LEASE: &str = "/etcdserverpb.Lease/LeaseGrant";
const WATCH: &str = "/etcdserverpb.Watch/Watch";

/// No load lasts nearly so long, so nobody has to renew a lease while it is measured.
const TTL_SECONDS: i64 = 3600;
const UPWARDS: i32 = 1;
const DOWNWARDS: i32 = 2;
const BY_CREATION: i32 = 2;
const DELETION: i32 = 1;

/// A cluster with etcd's own settings.
pub(super) struct Etcd {
    servers: Servers,
}

impl Etcd {
    pub(super) async fn start(count: usize) -> Result<Self> {
        let mut servers = Servers::new(count)?;
        let peers: Vec<String> = (0..count).map(|_| format!("http://{}", address())).collect();
        let named = |(number, peer): (usize, &String)| format!("m{number}={peer}");
        let cluster = peers.iter().enumerate().map(named).collect::<Vec<_>>().join(",");
        for (number, peer) in peers.iter().enumerate() {
            let data = servers.folder.path().join(format!("etcd-{number}"));
            let client = format!("http://{}", servers.addresses[number]);
            let arguments = [
                format!("--name=m{number}"),
                format!("--data-dir={}", data.display()),
                format!("--listen-client-urls={client}"),
                format!("--advertise-client-urls={client}"),
                format!("--listen-peer-urls={peer}"),
                format!("--initial-advertise-peer-urls={peer}"),
                format!("--initial-cluster={cluster}"),
                "--logger=zap".to_string(),
                "--log-level=error".to_string(),
            ];
            servers.add("etcd", &arguments)?;
        }
        for address in servers.addresses.clone() {
            // It listens before it has a leader.
            servers.retry(async || EtcdClient::connect(&address, "start").await).await?;
        }
        Ok(Etcd { servers })
    }
}

impl Service for Etcd {
    type Client = EtcdClient;
    async fn client(&self, number: usize, lock: &str) -> Result<EtcdClient> {
        EtcdClient::connect(self.servers.of_client(number), lock).await
    }
}

/// A client with a lease and, from its first wait on, a stream of what it watches.
pub(super) struct EtcdClient {
    channel: Channel,
    lease: i64,
    /// Every key of the lock begins with this.
    prefix: Vec<u8>,
    key: Vec<u8>,
    watch: Option<Watch>,
}

struct Watch {
    asked: mpsc::UnboundedSender<WatchRequest>,
    heard: Streaming<WatchResponse>,
}

impl Watch {
    /// Etcd answers nothing, not even that it has heard, before it was asked for something.
    async fn begin(channel: &Channel, first: WatchRequest) -> Result<Self> {
        let (asked, requests) = mpsc::unbounded_channel();
        asked.send(first)?;
        let mut grpc = Grpc::new(channel.clone());
        grpc.ready().await?;
        let requests = Call::new(UnboundedReceiverStream::new(requests));
        let codec = ProstCodec::<WatchRequest, WatchResponse>::default();
        let answer = grpc.streaming(requests, PathAndQuery::from_static(WATCH), codec).await?;
        Ok(Watch { asked, heard: answer.into_inner() })
    }
}

impl EtcdClient {
    async fn connect(address: &str, lock: &str) -> Result<Self> {
        let endpoint = Endpoint::from_shared(format!("http://{address}"))?.tcp_nodelay(true);
        let channel = endpoint.connect().await?;
        let request = LeaseGrantRequest { ttl: TTL_SECONDS };
        let LeaseGrantResponse { id: lease } = call(&channel, LEASE, request).await?;
        let prefix = format!("{lock}/").into_bytes();
        let key = format!("{lock}/{lease:x}").into_bytes();
        Ok(EtcdClient { channel, lease, prefix, key, watch: None })
    }

    /// One key of the lock, the first or the last one of those created up to a revision.
    fn one(&self, sort_order: i32, max_create_revision: i64) -> RangeRequest {
        let mut range_end = self.prefix.clone();
        // The end of a prefix that ends with '/'.
        if let Some(last) = range_end.last_mut() {
            *last += 1;
        }
        let (key, sort_target) = (self.prefix.clone(), BY_CREATION);
        RangeRequest {
            key,
            range_end,
            limit: 1,
            sort_order,
            sort_target,
            max_create_revision,
            ..Default::default()
        }
    }

    /// Waits until all keys that were created before the own one are gone.
    async fn wait_for_predecessors(&mut self, own: i64) -> Result<()> {
        loop {
            let last: RangeResponse =
                call(&self.channel, RANGE, self.one(DOWNWARDS, own - 1)).await?;
            let Some(before) = last.kvs.into_iter().next() else { return Ok(()) };
            let revision = last.header.context("an answer without a header")?.revision;
            self.wait_for_deletion(before.key, revision + 1).await?;
        }
    }

    async fn wait_for_deletion(&mut self, key: Vec<u8>, start_revision: i64) -> Result<()> {
        let create = WatchCreate { key: key.clone(), start_revision, ..Default::default() };
        let create = WatchRequest { create: Some(create), cancel: None };
        let watch = match &mut self.watch {
            Some(watch) => {
                watch.asked.send(create)?;
                watch
            }
            none => none.insert(Watch::begin(&self.channel, create).await?),
        };
        loop {
            let heard = watch.heard.next().await.context("etcd watches no more")??;
            let is_it = |event: &Event| {
                event.kind == DELETION && event.kv.as_ref().is_some_and(|kv| kv.key == key)
            };
            if heard.events.iter().any(is_it) {
                let cancel = WatchCancel { watch_id: heard.watch_id };
                watch.asked.send(WatchRequest { create: None, cancel: Some(cancel) })?;
                return Ok(());
            }
            // The end of an earlier watch is told late.
            if heard.canceled && heard.watch_id < 0 {
                bail!("etcd refuses to watch");
            }
        }
    }
}

impl Contender for EtcdClient {
    async fn acquire(&mut self) -> Result<()> {
        let (result, target) = (Relation::Equal.into(), Target::Create.into());
        // Nobody has created it.
        let compare =
            Compare { result, target, key: self.key.clone(), than: Some(Than::Create(0)) };
        let put = Request::Put(PutRequest {
            key: self.key.clone(),
            value: Vec::new(),
            lease: self.lease,
        });
        let owner = Request::Range(self.one(UPWARDS, 0));
        let success = [put, owner].map(|request| RequestOp { request: Some(request) }).into();
        let request = TxnRequest { compare: vec![compare], success, failure: Vec::new() };
        let answer: TxnResponse = call(&self.channel, TXN, request).await?;
        if !answer.succeeded {
            bail!("the key of this client is there already");
        }
        let own = answer.header.context("an answer without a header")?.revision;
        let mut ranges = answer.responses.into_iter().filter_map(|response| response.range);
        let owner = ranges.next().and_then(|range| range.kvs.into_iter().next());
        if owner.is_some_and(|owner| owner.create_revision == own) {
            return Ok(());
        }
        self.wait_for_predecessors(own).await?;
        // The lease may have run out meanwhile.
        let request = RangeRequest { key: self.key.clone(), ..Default::default() };
        let own: RangeResponse = call(&self.channel, RANGE, request).await?;
        if own.kvs.is_empty() { bail!("the lock was lost") } else { Ok(()) }
    }

    async fn release(&mut self) -> Result<()> {
        let request = DeleteRequest { key: self.key.clone() };
        let answer: DeleteResponse = call(&self.channel, DELETE, request).await?;
        if answer.deleted == 1 { Ok(()) } else { bail!("the lock was lost") }
    }
}

async fn call<Q, R>(channel: &Channel, method: &'static str, message: Q) -> Result<R>
where
    Q: Message + 'static,
    R: Message + Default + 'static,
{
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await?;
    let path = PathAndQuery::from_static(method);
    let answer = grpc.unary(Call::new(message), path, ProstCodec::<Q, R>::default()).await?;
    Ok(answer.into_inner())
}
