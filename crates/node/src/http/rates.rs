//! What has happened at a node lately, how long things take there, and what is wrong: for people, without a
//! database of metrics.

use axum::Json;
use axum::extract::State;
use catraca_group::Histogram;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Api;
use super::caller::Caller;
use super::input::Asked;
use super::problem::{Kind, Problem};
use crate::access::Role;
use crate::observing::alerts::Alert;
use crate::observing::rates::{MOST_SAMPLES, Sample};

/// How many samples are told to somebody who does not say how many.
const USUAL_SAMPLES: u32 = 300;

/// How far back.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RatesQuery {
    /// How many seconds at the most, from 1 to 600; 300 if nothing is said.
    #[param(minimum = 1, maximum = 600)]
    seconds: Option<u32>,
}

/// What has happened at this node lately.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RatesBody {
    /// The member.
    node: String,
    /// One for each second, the oldest first.
    samples: Vec<Sample>,
}

/// What has happened at this node in the last minutes, second by second.
#[utoipa::path(
    get,
    path = "/v1/rates",
    params(RatesQuery),
    responses((status = 200, description = "One sample for each second", body = RatesBody)),
)]
pub(super) async fn rates(
    State(api): State<Api>,
    caller: Caller,
    Asked(asked): Asked<RatesQuery>,
) -> Result<Json<RatesBody>, Problem> {
    let seconds = asked.seconds.unwrap_or(USUAL_SAMPLES);
    let most = MOST_SAMPLES as u32;
    if !(1..=most).contains(&seconds) {
        let detail = format!("seconds go from 1 to {most}, not {seconds}");
        return Err(Problem::new(Kind::BadRequest, "bad-query", detail));
    }
    caller.may(Role::Observe, [])?;
    let samples = api.observed.samples(seconds as usize);
    Ok(Json(RatesBody { node: api.gateway.own_name().to_string(), samples }))
}

/// How long something took, since the node began: counts by powers of two.
#[derive(Debug, Serialize, ToSchema)]
struct HistogramBody {
    /// How many there were.
    count: u64,
    /// How long they took together, in milliseconds.
    sum_ms: f64,
    /// Half of them took at most so many milliseconds; right to a factor of two.
    p50_ms: Option<f64>,
    /// 99 of 100 took at most so long.
    p99_ms: Option<f64>,
    /// How many took at most so long, and longer than the bucket before.
    buckets: Vec<Bucket>,
}

#[derive(Debug, Serialize, ToSchema)]
struct Bucket {
    /// In milliseconds; nothing for those that took longer than all bounds.
    at_most_ms: Option<f64>,
    count: u64,
}

impl From<&Histogram> for HistogramBody {
    fn from(histogram: &Histogram) -> Self {
        let millis = |time: std::time::Duration| time.as_secs_f64() * 1000.0;
        let bounded: Vec<Bucket> = histogram
            .counts()
            .map(|(bound, count)| Bucket { at_most_ms: Some(millis(bound)), count })
            .collect();
        let rest = histogram.count() - bounded.iter().map(|bucket| bucket.count).sum::<u64>();
        let rest = Bucket { at_most_ms: None, count: rest };
        HistogramBody {
            count: histogram.count(),
            sum_ms: millis(histogram.sum()),
            p50_ms: histogram.quantile(0.5).map(millis),
            p99_ms: histogram.quantile(0.99).map(millis),
            buckets: bounded.into_iter().chain([rest]).collect(),
        }
    }
}

/// How long things take at this node, since it began.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TimesBody {
    /// From asking to being inside, of those who had to wait.
    waits: HistogramBody,
    /// From being inside to leaving.
    holds: HistogramBody,
    /// From one's leaving until the next client of this node is inside, if one waited.
    handovers: HistogramBody,
}

/// How long clients of this node wait for locks and hold them, and how long a hand-over takes.
#[utoipa::path(
    get,
    path = "/v1/times",
    responses((status = 200, description = "Histograms, since the node began", body = TimesBody)),
)]
pub(super) async fn times(
    State(api): State<Api>,
    caller: Caller,
) -> Result<Json<TimesBody>, Problem> {
    caller.may(Role::Observe, [])?;
    let times = api.gateway.times();
    Ok(Json(TimesBody {
        waits: (&times.waits).into(),
        holds: (&times.holds).into(),
        handovers: (&times.handovers).into(),
    }))
}

/// What is wrong, as this node sees it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AlertsBody {
    /// The worst first.
    alerts: Vec<Alert>,
}

/// What a person would want to know at once, as this node sees it; docs/DASHBOARD.md says when.
#[utoipa::path(
    get,
    path = "/v1/alerts",
    responses((status = 200, description = "What is wrong, the worst first", body = AlertsBody)),
)]
pub(super) async fn alerts(
    State(api): State<Api>,
    caller: Caller,
) -> Result<Json<AlertsBody>, Problem> {
    caller.may(Role::Observe, [])?;
    let look = api.observed.looks().borrow().clone();
    let alerts = look.map_or_else(Vec::new, |look| visible(&look.alerts, &caller));
    Ok(Json(AlertsBody { alerts }))
}

/// Those of locks that the caller may look at, and those that are about no lock.
pub(super) fn visible(alerts: &[Alert], caller: &Caller) -> Vec<Alert> {
    let is_visible = |alert: &&Alert| alert.lock.as_ref().is_none_or(|lock| caller.sees(lock));
    alerts.iter().filter(is_visible).cloned().collect()
}
