//! The HTTP interface: JSON over HTTP/1.1 for every language, with an OpenAPI document of itself.
//!
//! `server.rs` takes connections; one file for each kind of resource translates requests for the gateway;
//! whatever is refused, by whom ever, leaves as a `problem.rs`. Names of locks travel in bodies and queries and
//! never in paths, and fences are strings, because they do not fit into the numbers of all JSON readers.

mod anatomy;
pub(crate) mod caller;
mod changes;
mod dashboard;
mod document;
pub(crate) mod feed;
mod force;
pub(crate) mod fuzzing;
mod header;
mod health;
mod hold;
mod holds;
mod host;
pub(crate) mod input;
#[cfg(test)]
mod limits;
mod links;
mod live;
mod locks;
mod me;
mod page;
pub(crate) mod pieces;
mod presence;
pub(crate) mod problem;
mod rates;
mod repositories;
mod server;
mod state;
mod status;
mod stream;
mod terraform;
mod time;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use axum::{Json, Router};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use self::problem::{Denial, Kind, Problem, Uncounted};
use self::server::Server;
use self::state::States;
use crate::acceptor::Acceptor;
use crate::access::Access;
use crate::config::Config;
use crate::gateway::Gateway;
use crate::git::{self, Git};
use crate::native::quota::Quota;
use crate::node::StartError;
use crate::observing::Observed;

/// What requests are served with.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) gateway: Gateway,
    access: Arc<Access>,
    pub(crate) quota: Arc<Quota>,
    /// Where the state of Terraform is kept, if it is.
    states: Option<Arc<States>>,
    /// What is served for Git.
    pub(crate) git: Arc<Git>,
    /// What is seen of the node, second by second.
    observed: Arc<Observed>,
}

impl Api {
    fn open(
        config: &Config,
        gateway: &Gateway,
        quota: Arc<Quota>,
        acceptor: &Acceptor,
        stop: watch::Receiver<bool>,
    ) -> Result<Self, StartError> {
        let states = config.http.terraform_state.as_ref().map(|folder| {
            let failed = |reason| StartError::Folder { folder: folder.clone(), reason };
            States::open(folder).map(Arc::new).map_err(failed)
        });
        let git = Git::open(&config.git, gateway, acceptor.tls.is_some())?;
        Ok(Api {
            gateway: gateway.clone(),
            access: Arc::clone(&acceptor.access),
            quota,
            states: states.transpose()?,
            git: Arc::new(git),
            observed: gateway.observe(stop),
        })
    }
}

/// HTTP, while it is served. It ends with this.
pub(crate) struct Serving {
    pub(crate) address: SocketAddr,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
    git: Arc<Git>,
}

impl Serving {
    /// Begins to serve HTTP, if that is configured.
    pub(crate) async fn start(
        config: &Config,
        gateway: &Gateway,
        quota: Arc<Quota>,
        acceptor: &Acceptor,
    ) -> Result<Option<Self>, StartError> {
        let Some(listen) = config.http.listen.clone() else { return Ok(None) };
        let (stop, stopped) = watch::channel(false);
        let api = Api::open(config, gateway, quota, acceptor, stopped.clone())?;
        let failed = |reason| StartError::Listen { address: listen.clone(), reason };
        let listener = TcpListener::bind(&listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        if !config.security.may_listen_at(address.ip()) {
            return Err(StartError::Insecure(address));
        }
        let git = Arc::clone(&api.git);
        git.start();
        let server = Server::new(api, acceptor.clone());
        let task = tokio::spawn(server.run(listener, stopped));
        Ok(Some(Serving { address, stop, task, git }))
    }

    /// Takes no more requests, and waits a moment until those that came are answered.
    pub(crate) async fn stop(mut self) {
        self.stop.send_replace(true);
        // How it ends does not matter.
        let _ = (&mut self.task).await;
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.task.abort();
        self.git.stop();
    }
}

/// Everything that there is under the address of the HTTP port.
fn router(api: Api) -> Router {
    let (documented, document) = document::documented();
    let document = Arc::new(document);
    let router = documented
        .route("/openapi.json", get(async move || Json(document)))
        .route("/problems/{kind}", get(problem::explain))
        .route("/terraform/{*name}", any(terraform::serve))
        .route("/terraform-lock/{*name}", any(terraform::serve_lock))
        .route("/git/{*rest}", any(git::serve))
        .merge(dashboard::routes())
        .merge(page::routes());
    router
        .fallback(nothing_here)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(api.clone(), guard))
        .with_state(api)
}

/// What holds for every request and every answer.
async fn guard(State(api): State<Api>, request: Request, next: Next) -> Response {
    let asks_for_lfs = git::asks_for_lfs(request.headers());
    let is_served =
        header::check(&request).and_then(|()| host::check(&request, api.access.wants_proof()));
    let mut response = match is_served {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    if asks_for_lfs {
        response = git::for_lfs(response).await;
    }
    if let Some(Uncounted(code)) = response.extensions().get() {
        api.gateway.metrics().reject(code);
    }
    if let Some(Denial { caller, why }) = response.extensions().get() {
        api.gateway.record_denial(caller.as_deref(), why);
    }
    let headers = response.headers_mut();
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

async fn nothing_here(uri: Uri) -> Response {
    if uri.path().ends_with("/locks/verify") {
        // A client that finds nothing there would push without asking for locks ever again.
        return git::bad_repository();
    }
    let problem =
        Problem::new(Kind::NotFound, "no-such-path", "there is nothing here; see /openapi.json");
    problem.into_response()
}

/// The framework adds which methods there are.
async fn wrong_method(method: Method) -> Response {
    match method {
        Method::OPTIONS => StatusCode::NO_CONTENT.into_response(),
        method => {
            let detail = format!("there is no {method} here");
            Problem::new(Kind::WrongMethod, "wrong-method", detail).into_response()
        }
    }
}
