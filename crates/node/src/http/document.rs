//! The OpenAPI document, made of the same definitions as the routes.

use axum::Router;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    Components, Content, Info, OpenApi, OpenApiBuilder, Ref, RefOr, Response, ResponseBuilder,
};
use utoipa::{PartialSchema, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::problem::{Kind, PROBLEM_JSON, ProblemBody};
use super::{
    Api, anatomy, changes, force, health, holds, links, live, locks, me, rates, repositories,
    status,
};

const ABOUT: &str = "\
Named locks, semaphores and sets of locks of a group of nodes. Every grant carries fences: numbers that grow from \
grant to grant of a lock, so that whoever is guarded can turn away a holder that has lost its lock. Ask any \
node: holds are found wherever they are in the group.

Whatever is refused is a problem of RFC 9457: decide by `type` or `code`, show people `detail`. The lock \
endpoints of the http backend of Terraform and OpenTofu are at /terraform/NAME; they use the methods \
LOCK and UNLOCK, which such a document cannot describe.";

/// What any request may be answered with.
const ANYWHERE: [Kind; 6] = [
    Kind::BadRequest,
    Kind::Unauthenticated,
    Kind::Forbidden,
    Kind::WrongHost,
    Kind::LongHeader,
    Kind::Unavailable,
];
/// What a request with a body may be answered with beside that.
const WITH_BODY: [Kind; 4] = [Kind::TimedOut, Kind::TooLarge, Kind::NotJson, Kind::TooMany];
/// Those whose answers do not depend on who asks.
const OPEN: [&str; 2] = ["/healthz", "/readyz"];
const TOKEN: &str = "token";

/// The routes that the document describes, and the document.
pub(super) fn documented() -> (Router<Api>, OpenApi) {
    let mut info = Info::new("Catraca", env!("CARGO_PKG_VERSION"));
    info.description = Some(ABOUT.to_string());
    let mut components = Components::new();
    components.schemas.insert(ProblemBody::name().into(), ProblemBody::schema());
    let mut schemas = Vec::new();
    ProblemBody::schemas(&mut schemas);
    components.schemas.extend(schemas);
    let token = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    components.add_security_scheme(TOKEN, token);
    let empty = OpenApiBuilder::new().info(info).components(Some(components)).build();
    let router = OpenApiRouter::with_openapi(empty)
        .routes(routes!(holds::acquire))
        .routes(routes!(holds::look, holds::release))
        .routes(routes!(holds::renew))
        .routes(routes!(locks::list))
        .routes(routes!(locks::check))
        .routes(routes!(anatomy::look))
        .routes(routes!(force::force_release))
        .routes(routes!(changes::watch))
        .routes(routes!(repositories::list))
        .routes(routes!(status::status))
        .routes(routes!(links::links))
        .routes(routes!(live::live))
        .routes(routes!(rates::rates))
        .routes(routes!(rates::times))
        .routes(routes!(rates::alerts))
        .routes(routes!(me::me))
        .routes(routes!(health::alive))
        .routes(routes!(health::ready))
        .routes(routes!(health::metrics));
    let (router, mut document) = router.split_for_parts();
    for (path, item) in &mut document.paths.paths {
        let operations = [&mut item.get, &mut item.post, &mut item.delete]
            .into_iter()
            .filter_map(Option::as_mut);
        for operation in operations {
            complete(operation, OPEN.contains(&path.as_str()));
        }
    }
    (router, document)
}

/// Adds what holds for every operation.
fn complete(operation: &mut Operation, is_open: bool) {
    let with_body = operation.request_body.is_some();
    let more = WITH_BODY.into_iter().filter(|_| with_body);
    for kind in ANYWHERE.into_iter().chain(more) {
        let status = kind.status().as_u16().to_string();
        let responses = &mut operation.responses.responses;
        responses.entry(status).or_insert_with(|| RefOr::T(problem(kind.title())));
    }
    if !is_open {
        let none: [&str; 0] = [];
        // Without a token too: a node may know none.
        operation.security =
            Some(vec![SecurityRequirement::new(TOKEN, none), SecurityRequirement::default()]);
    }
    operation.tags = None;
}

fn problem(title: &str) -> Response {
    let schema = Ref::from_schema_name(ProblemBody::name());
    let content = Content::new(Some(schema));
    ResponseBuilder::new().description(title).content(PROBLEM_JSON, content).build()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// What the document describes, as in `GET /v1/locks`.
    fn served() -> BTreeSet<String> {
        let (_, document) = documented();
        let mut served = BTreeSet::new();
        for (path, item) in &document.paths.paths {
            let methods = [("GET", &item.get), ("POST", &item.post), ("DELETE", &item.delete)];
            let used = methods.into_iter().filter(|(_, operation)| operation.is_some());
            served.extend(used.map(|(method, _)| format!("{method} {path}")));
        }
        assert!(served.len() > 15, "{served:?}");
        served
    }

    #[test]
    fn the_index_of_the_manual_has_every_endpoint_and_no_other() {
        let index = include_str!("../../../../docs/COMMANDS.md");
        let rows = index.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
        let is_endpoint =
            |row: &&str| ["GET /", "POST /", "DELETE /"].iter().any(|it| row.starts_with(it));
        let listed: BTreeSet<String> =
            rows.map(|(row, _)| row).filter(is_endpoint).map(str::to_string).collect();
        assert_eq!(listed, served());
    }

    #[test]
    fn the_table_of_the_manual_has_every_endpoint_and_no_other() {
        /// Pages for people, and the document itself: it does not describe them.
        const PAGES: [&str; 4] = ["GET /", "GET /try", "GET /openapi.json", "GET /problems/KIND"];
        let manual = include_str!("../../../../docs/HTTP.md");
        let firsts = manual.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
        let quoted = firsts.flat_map(|cell| cell.split('`').skip(1).step_by(2));
        let is_endpoint =
            |row: &&str| ["GET /", "POST /", "DELETE /"].iter().any(|it| row.starts_with(it));
        let listed: BTreeSet<String> = quoted
            .filter(is_endpoint)
            .filter_map(|row| row.split('?').next())
            .filter(|row| !PAGES.contains(row))
            .map(str::to_string)
            .collect();
        let served = served().into_iter().map(|row| row.replace("{id}", "ID"));
        assert_eq!(listed, served.collect());
    }
}
