//! One cell of an experiment: what only makes sense together.

use serde::Deserialize;
use toml::Spanned;

use super::file::Form;
use super::mistake::Mistake;
use crate::cell::value;
use crate::cell::{Cell, Change, Cut, Event, Kind, Outage, Traffic, Tunnel};
use crate::emulator::Direction;
use crate::results::Coordinate;
use crate::topology::Topology;
use crate::traffic::{ping, tcp, udp};

/// The shortest time over which a goodput is worth the name, in seconds.
const LEAST_MEASURED: f64 = 8.0;

/// So many greedy flows at once at most.
const MOST_FLOWS: u32 = 16;

/// The shortest time between two changes of a rate that goes up and down, in seconds.
const LEAST_EVERY: f64 = 0.1;

/// Weights as the scheduler takes them.
const WEIGHTS: std::ops::RangeInclusive<u32> = 1..=10_000;

/// A flow during which links are cut, as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OutageForm {
    #[serde(default)]
    systems: Vec<String>,
    #[serde(deserialize_with = "value::run_seconds")]
    seconds: f64,
    cut: Vec<Spanned<CutForm>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CutForm {
    link: Spanned<String>,
    #[serde(deserialize_with = "value::seconds")]
    at: f64,
    #[serde(deserialize_with = "value::seconds")]
    until: f64,
    #[serde(default = "both")]
    direction: Direction,
}

fn both() -> Direction {
    Direction::Both
}

/// Something that happens to a link, as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventForm {
    #[serde(deserialize_with = "value::seconds")]
    at: f64,
    link: Spanned<String>,
    change: ChangeForm,
    share: Option<f64>,
    direction: Option<Direction>,
    /// One after the other, over and over.
    #[serde(default)]
    shares: Vec<f64>,
    every: Option<f64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ChangeForm {
    CarrierDown,
    CarrierUp,
    Cut,
    Mend,
    Rate,
    Roam,
}

/// Cell number `number` at `place`, from a file in which the values of every axis stand.
pub(super) fn cell(form: Form, number: usize, place: Vec<Coordinate>) -> Result<Cell, Mistake> {
    let span = form.link.span();
    let mut links = form.link.into_inner();
    let mut tunnel = form.tunnel;
    if let Some(wanted) = form.links {
        if *wanted.get_ref() > links.len() || *wanted.get_ref() == 0 {
            let message = format!("there are 1 to {} links to choose from", links.len());
            return Err(Mistake::new(wanted.span(), message));
        }
        links.truncate(*wanted.get_ref());
        tunnel.as_mut().weights.truncate(*wanted.get_ref());
    }
    let mut topology =
        Topology::new(form.seed, links).map_err(|error| Mistake::new(span, error.to_string()))?;
    topology.addressing = form.addressing;
    let tunnel = check_tunnel(tunnel, topology.links.len())?;
    let mut traffic = check_traffic(form.traffic)?;
    if !takes_long(&traffic, &topology) {
        traffic.long_seconds = None;
    }
    let events = form.event.into_iter().map(|event| check_event(event, &topology, &traffic));
    let mut events = events.collect::<Result<Vec<_>, _>>()?.concat();
    events.sort_by(|a, b| a.at.total_cmp(&b.at));
    let outage = form.outage.map(|outage| check_outage(outage, &topology)).transpose()?;
    Ok(Cell {
        number,
        place,
        topology,
        tunnel,
        traffic,
        events,
        outage,
        scale: 1.0,
        scale_reason: String::new(),
        published: Vec::new(),
    })
}

/// Whether its goodput may still rise after `seconds`: different delays make CUBIC's slow start end early, and its
/// window then grows for tens of seconds.
fn takes_long(traffic: &Traffic, topology: &Topology) -> bool {
    let is_cubic = traffic.kind == Kind::Tcp && traffic.congestion == tcp::CUBIC;
    let mut delays = topology.links.iter().map(|link| link.forward.delay + link.backward.delay);
    let first = delays.next();
    is_cubic && delays.any(|delay| Some(delay) != first)
}

fn check_event(
    form: Spanned<EventForm>,
    topology: &Topology,
    traffic: &Traffic,
) -> Result<Vec<Event>, Mistake> {
    let span = form.span();
    let EventForm { at, link, change, share, direction, shares, every } = form.into_inner();
    let link = named(&link, topology)?;
    let wrong = |message: &str| Err(Mistake::new(span.clone(), message));
    if at >= traffic.seconds {
        return wrong("it is after the end of the traffic");
    }
    if direction.is_some() && change != ChangeForm::Cut {
        return wrong("only `cut` has a `direction`");
    }
    let is_share = |share: &f64| (0.001..=10.0).contains(share);
    if let Some(every) = every {
        let possible = change == ChangeForm::Rate && share.is_none() && shares.len() > 1;
        if !possible || !shares.iter().all(is_share) || every < LEAST_EVERY {
            return wrong(
                "`every` needs at least 0.1 s, `rate`, and two or more `shares` of 0.001 to 10",
            );
        }
        if topology.links[link].forward.rate.is_none() {
            return wrong("the link has no `rate_mbps`, so there is no share of it");
        }
        let times = (0..).map(|number| at + every * f64::from(number));
        let times = times.take_while(|at| *at < traffic.seconds);
        let events = times.zip(shares.iter().cycle());
        return Ok(events
            .map(|(at, &share)| Event { at, link, change: Change::Rate(share) })
            .collect());
    }
    if !shares.is_empty() {
        return wrong("`shares` need `every`, the seconds between two of them");
    }
    let change = match (change, share) {
        (ChangeForm::Rate, _) if topology.links[link].forward.rate.is_none() => {
            return wrong("the link has no `rate_mbps`, so there is no share of it");
        }
        (ChangeForm::Rate, Some(share)) if is_share(&share) => Change::Rate(share),
        (ChangeForm::Rate, _) => return wrong("`rate` needs a `share` of 0.001 to 10"),
        (_, Some(_)) => return wrong("only `rate` has a `share`"),
        (ChangeForm::CarrierDown, None) => Change::CarrierDown,
        (ChangeForm::CarrierUp, None) => Change::CarrierUp,
        (ChangeForm::Cut, None) => Change::Cut(direction.unwrap_or(Direction::Both)),
        (ChangeForm::Mend, None) => Change::Mend,
        (ChangeForm::Roam, None) if topology.links[link].nat => Change::Roam,
        (ChangeForm::Roam, None) => return wrong("only a link with `nat = true` can roam"),
    };
    Ok(vec![Event { at, link, change }])
}

/// The number of the link of that name.
fn named(name: &Spanned<String>, topology: &Topology) -> Result<usize, Mistake> {
    let found = topology.links.iter().position(|link| link.name == *name.get_ref());
    let message = || format!("no link is called `{}`", name.get_ref());
    found.ok_or_else(|| Mistake::new(name.span(), message()))
}

fn check_tunnel(form: Spanned<Tunnel>, links: usize) -> Result<Tunnel, Mistake> {
    let span = form.span();
    let mut tunnel = form.into_inner();
    if tunnel.weights.is_empty() {
        tunnel.weights = vec![1; links];
    }
    if tunnel.weights.len() != links {
        let given = tunnel.weights.len();
        let message =
            format!("{given} weights, but {links} in [[link]]: give one per link, in their order");
        return Err(Mistake::new(span, message));
    }
    if let Some(weight) = tunnel.weights.iter().find(|weight| !WEIGHTS.contains(weight)) {
        let message =
            format!("a weight of {weight}: weights are {} to {}", WEIGHTS.start(), WEIGHTS.end());
        return Err(Mistake::new(span, message));
    }
    Ok(tunnel)
}

fn check_traffic(form: Spanned<Traffic>) -> Result<Traffic, Mistake> {
    let span = form.span();
    let traffic = form.into_inner();
    let Traffic { seconds, omit, long_seconds, .. } = traffic;
    let message = match traffic.kind {
        Kind::Calls | Kind::Ftp | Kind::Media | Kind::Ping | Kind::Udp
            if traffic.beside.is_some() || traffic.rival.is_some() =>
        {
            "only `tcp` and `quic` have a stream beside them or a rival".into()
        }
        _ if long_seconds.is_some_and(|long| long <= seconds) => {
            format!("`long_seconds` is not longer than the {seconds} s of `seconds`")
        }
        Kind::Quic | Kind::Tcp if traffic.flows > MOST_FLOWS => {
            format!("{} flows: at most {MOST_FLOWS} fill links at once", traffic.flows)
        }
        Kind::Calls | Kind::Media | Kind::Quic | Kind::Tcp | Kind::Udp
            if seconds - omit < LEAST_MEASURED =>
        {
            format!(
                "{seconds} s less {omit} s of start-up leave under {LEAST_MEASURED} s to measure: \
             lengthen `seconds`"
            )
        }
        Kind::Udp
            if traffic.rate_mbps * 1e6 / 8.0 / traffic.size as f64 * seconds
                > udp::MOST_PACKETS as f64 =>
        {
            format!("more than {} packets: lower `rate_mbps` or `seconds`", udp::MOST_PACKETS)
        }
        Kind::Ping if seconds / traffic.interval > f64::from(ping::MOST_REQUESTS) => {
            format!("more than {} requests: lengthen `interval`", ping::MOST_REQUESTS)
        }
        Kind::Calls | Kind::Ftp | Kind::Media | Kind::Ping | Kind::Quic | Kind::Tcp | Kind::Udp => {
            return Ok(traffic);
        }
    };
    Err(Mistake::new(span, message))
}

fn check_outage(form: OutageForm, topology: &Topology) -> Result<Outage, Mistake> {
    let seconds = form.seconds;
    let cuts = form.cut.into_iter().map(|cut| {
        let span = cut.span();
        let CutForm { link, at, until, direction } = cut.into_inner();
        if until <= at || until > seconds {
            let message = format!(
                "a cut from {at} s until {until} s does not fit: it must end after it began, within \
                 the outage's {seconds} s"
            );
            return Err(Mistake::new(span, message));
        }
        Ok(Cut { link: named(&link, topology)?, at, until, direction })
    });
    Ok(Outage { systems: form.systems, seconds, cuts: cuts.collect::<Result<_, _>>()? })
}
