//! Why packets went where they went, in words.
//!
//! Each sentence can be understood alone: it names the path, the number with its unit, and what follows from it.

use mpt_control::{Estimate, Explanation, Limit, PathExplanation};

use super::finding::found;
use super::quantity::{bytes, count, duration, ms, percent, rate};
use super::quota;
use super::repair;
use super::wrap::wrap;

/// Columns that text is broken to.
const WIDTH: usize = 80;

/// A path that was kept busy for this share of the time was full all the time.
const ALWAYS: f64 = 0.8;

/// Delays that differ by less are the same for people, in milliseconds.
const SAME_DELAY: f64 = 1.0;

/// A delay that varies by more is worth a sentence, in milliseconds.
const VARIES: f64 = 2.0;

/// What was found longer ago says nothing of the last seconds.
const FOUND_WITHIN: f64 = 30.0;

/// All connections that are explained.
pub(crate) fn explanations(all: &[Explanation]) -> String {
    if all.is_empty() {
        return "there are no connections\n".to_owned();
    }
    all.iter().map(explanation).collect::<Vec<_>>().join("\n")
}

fn explanation(it: &Explanation) -> String {
    let mut out = String::new();
    let time = duration(it.seconds);
    say(
        &mut out,
        "",
        &[format!("connection {} of tunnel {}, the last {time}", it.connection, it.tunnel)],
    );
    say(&mut out, "  ", &[choice(it), sent(it)]);
    for path in &it.paths {
        out.push('\n');
        say(&mut out, "  ", &path_sentences(it, path));
        let recent = path.estimate.iter().flat_map(|estimate| &estimate.found);
        for found in recent.filter_map(|it| (it.ago_seconds <= FOUND_WITHIN).then(|| found(it))?) {
            say(&mut out, "    ", &[found]);
        }
    }
    out.push('\n');
    say(&mut out, "  ", &queue(it));
    for flow in &it.flows {
        say(&mut out, "  ", &[repair::flow(flow)]);
    }
    let repaired = it.repair.iter().flat_map(repair::sentences).collect::<Vec<_>>();
    if !repaired.is_empty() {
        say(&mut out, "  ", &repaired);
    }
    say(&mut out, "  ", &order(it));
    out
}

/// Sentences as one paragraph.
fn say(out: &mut String, lead: &str, sentences: &[String]) {
    let text = format!("{lead}{}", sentences.join(" "));
    for line in wrap(&text, WIDTH, "") {
        out.push_str(&line);
        out.push('\n');
    }
}

fn choice(it: &Explanation) -> String {
    let words = match (it.scheduler.as_str(), it.framing.as_str()) {
        (_, "none") => "There is no session with the peer yet, so nothing can be sent.",
        ("earliest", _) => {
            "Each packet takes the path by which it arrives first, by the measured rates and delays."
        }
        ("lowest-rtt", _) => {
            "Each packet takes the path with the lowest delay of those that are not full, by the measured rates."
        }
        ("redundant", _) => {
            "Each packet takes all paths that are not full, and the peer drops the copies."
        }
        ("flow", _) => "Each flow stays on one path, which its weight or a pin gives it.",
        ("weighted", _) => {
            "Packets are spread over the paths by their weights, whatever rates and delays are."
        }
        (other, _) => return format!("Paths are chosen by the scheduler {other}."),
    };
    words.to_owned()
}

fn sent(it: &Explanation) -> String {
    let packets = count(it.sent.packets, "packet");
    let sent = if it.sent.packets == 0 {
        "Nothing was sent.".to_owned()
    } else {
        let speed = speed(it.sent.bytes, it.seconds);
        format!("{} were sent in {packets}{speed}.", bytes(it.sent.bytes))
    };
    match it.no_path {
        0 => sent,
        dropped => format!("{sent} {} dropped because no path was up.", were(dropped, "packet")),
    }
}

/// What bytes in so many seconds come to: `, 9.42 Mbit/s`.
fn speed(bytes: u64, seconds: f64) -> String {
    if seconds < 0.1 {
        return String::new();
    }
    format!(", {}", rate(bytes as f64 * 8.0 / seconds))
}

/// `1 packet was`, `2 packets were`.
fn were(number: u64, what: &str) -> String {
    format!("{} {}", count(number, what), if number == 1 { "was" } else { "were" })
}

fn path_sentences(it: &Explanation, path: &PathExplanation) -> Vec<String> {
    let mut sentences = vec![carried(it, path)];
    sentences.extend(limited(it, path));
    sentences.extend(path.quota.as_ref().map(quota::sentences));
    if let Some(estimate) = &path.estimate
        && is_used(path)
    {
        sentences.extend(compared(it, path, estimate));
        sentences.extend(measured(estimate));
    }
    if path.lost > 0 {
        let loss = path.estimate.as_ref().and_then(|estimate| estimate.loss);
        let share =
            loss.map_or(String::new(), |loss| format!(" ({} % in the last 10 s)", percent(loss)));
        sentences.push(format!("{} lost on it{share}.", were(path.lost, "datagram")));
    }
    if path.resent > 0 {
        let resent = were(path.resent, "datagram");
        sentences.push(format!("{resent} sent again by it after another path was lost."));
    }
    sentences
}

fn carried(it: &Explanation, path: &PathExplanation) -> String {
    let name = &path.name;
    if path.sent.packets == 0 {
        return format!("{name} carried nothing.");
    }
    let share = match path.share {
        ..0.005 => "less than 1 %".to_owned(),
        share => format!("{:.0} %", share * 100.0),
    };
    format!("{name} carried {share} of the bytes{}.", speed(path.sent.bytes, it.seconds))
}

/// Whether packets can go by a path.
fn is_used(path: &PathExplanation) -> bool {
    !matches!(
        path.limit,
        Limit::Off | Limit::Down | Limit::Standby | Limit::Delay | Limit::Stopped | Limit::Other
    )
}

/// What keeps a path from carrying more.
fn limited(it: &Explanation, path: &PathExplanation) -> Option<String> {
    let nothing = Estimate::default();
    let estimate = path.estimate.as_ref().unwrap_or(&nothing);
    Some(match path.limit {
        Limit::Off => {
            format!("It is switched off; `mpt path up {}` puts it into service.", path.name)
        }
        Limit::Down => {
            let cause = path.cause.as_ref().map_or(String::new(), |cause| format!(": {cause}"));
            format!("It is {}{cause}.", if path.state.is_empty() { "down" } else { &path.state })
        }
        Limit::Standby if path.quota.as_ref().is_some_and(|quota| quota.used_up) => {
            "It stands by.".to_owned()
        }
        Limit::Standby => "It stands by: a path with a lower priority number is up.".to_owned(),
        Limit::Delay => too_slow(it, estimate),
        Limit::Stopped => "It is stopped: it went on to lose more than a fifth of all packets although next to nothing was \
                           sent on it. It is probed, and used again when that arrives."
            .to_owned(),
        Limit::Loss => lossy(estimate),
        Limit::Start => format!(
            "It is needed because other paths are full, and has only begun: it is sent on at {}, and faster after \
             each round trip, until it is full.",
            estimate.pace.map_or("its first rate".to_owned(), |pace| rate(pace as f64))
        ),
        Limit::Rate => full(estimate),
        Limit::Load => not_full(path, estimate),
        Limit::Weight => weight(it, path),
        Limit::Other => return None,
    })
}

fn too_slow(it: &Explanation, estimate: &Estimate) -> String {
    let longer = ms(estimate.skew_ms.unwrap_or_default());
    let than = fastest(it).map_or(String::new(), |fastest| format!(" than by {}", fastest.name));
    format!(
        "It is left out: packets take {longer} ms longer by it{than}, and the peer would have to hold all others for \
         that time. The limit is 300 ms."
    )
}

fn lossy(estimate: &Estimate) -> String {
    let at = estimate
        .pace
        .map_or(String::new(), |pace| format!(" at {} and no more", rate(pace as f64)));
    format!("It loses more than usual when more is sent, so it is sent on{at}.")
}

fn full(estimate: &Estimate) -> String {
    let how_long = match estimate.busy {
        Some(busy) if busy < ALWAYS => format!("It was full for {:.0} % of the time", busy * 100.0),
        _ => "It is full".to_owned(),
    };
    let carries = match estimate.rate {
        Some(bits) if estimate.fixed => format!("{} are configured as its rate", rate(bits as f64)),
        Some(bits) => format!("it delivers {} as measured", rate(bits as f64)),
        None => "its rate is not known yet".to_owned(),
    };
    let queue = ms(estimate.queueing_ms);
    let wanted = estimate.queueing_target_ms.map_or(String::new(), |target| {
        format!(", where {} ms are wanted to keep it busy", ms(target))
    });
    format!("{how_long}: {carries}. {queue} ms stand in its queue{wanted}.")
}

fn not_full(path: &PathExplanation, estimate: &Estimate) -> String {
    let idle = path.sent.packets == 0;
    match (estimate.rate, estimate.stage.as_str()) {
        (Some(bits), _) if estimate.fixed => {
            format!("It is not full: {} are configured as its rate.", rate(bits as f64))
        }
        (Some(bits), "open" | "trains") => format!(
            "It has never been full, so what it can carry is not known; {} arrived at the most.",
            rate(bits as f64)
        ),
        (Some(bits), _) => format!("It is not full: it can carry about {}.", rate(bits as f64)),
        (None, _) if idle => "What it can carry is not known, as it was not needed.".to_owned(),
        (None, _) => "It is not full.".to_owned(),
    }
}

fn weight(it: &Explanation, path: &PathExplanation) -> String {
    let weighed = it.paths.iter().filter(|path| path.limit == Limit::Weight);
    let all: u64 = weighed.map(|path| path.weight).sum();
    let share = path.weight as f64 * 100.0 / all.max(1) as f64;
    let of = if it.scheduler == "flow" { "flows" } else { "packets" };
    format!("Its weight is {} of {all} in all, so it gets {share:.0} % of the {of}.", path.weight)
}

/// The path with the least delay.
fn fastest(it: &Explanation) -> Option<&PathExplanation> {
    let skew = |path: &&PathExplanation| path.estimate.as_ref().and_then(|it| it.skew_ms);
    let known = it.paths.iter().filter(|path| is_used(path) && skew(path).is_some());
    known.min_by(|a, b| skew(a).unwrap_or_default().total_cmp(&skew(b).unwrap_or_default()))
}

/// How much longer than the fastest path it takes, and what follows.
fn compared(it: &Explanation, path: &PathExplanation, estimate: &Estimate) -> Option<String> {
    let (fastest, skew) = (fastest(it)?, estimate.skew_ms?);
    let others = it.paths.iter().filter(|other| is_used(other)).count() > 1;
    let name = &fastest.name;
    if !others {
        return None;
    }
    if *name == path.name {
        let trip = estimate.rtt_ms.map(|trip| format!(", {} ms there and back", ms(trip)));
        return Some(format!("It is the fastest path{}.", trip.unwrap_or_default()));
    }
    if skew < SAME_DELAY {
        return Some(format!("It is as fast as {name}."));
    }
    let longer = ms(skew);
    if it.scheduler != "earliest" {
        return Some(format!("Packets take {longer} ms longer by it than by {name}."));
    }
    Some(format!(
        "Packets take {longer} ms longer by it than by {name}, so one goes here only if it would wait longer than \
         that for the faster paths."
    ))
}

/// What else is measured, if it matters.
fn measured(estimate: &Estimate) -> Vec<String> {
    let mut sentences = Vec::new();
    if estimate.committed > 0 {
        let (waiting, size) =
            (count(estimate.committed, "packet"), bytes(estimate.committed_bytes));
        let wait = if estimate.committed == 1 { "waits" } else { "wait" };
        sentences.push(format!("At this moment {waiting} ({size}) {wait} to leave by it."));
    }
    if let Some(varies) = estimate.deviation_ms.filter(|varies| *varies > VARIES) {
        sentences.push(format!("Its delay varies by {} ms.", ms(varies)));
    }
    if estimate.stage == "competing" {
        sentences.push(
            "Others keep a queue on its way, so it is sent on as one TCP flow of theirs would be, until that queue is \
             empty."
                .to_owned(),
        );
    }
    if estimate.stage == "draining" {
        sentences.push(
            "Less is sent at this moment, so that its delay without a queue shows.".to_owned(),
        );
    }
    sentences
}

/// That packets of bulk flows are delivered later.
fn equal_delay(milliseconds: f64) -> String {
    format!(
        "The peer delivers packets of bulk flows {} ms later than the fastest path could, so that their senders keep \
         enough in flight for the slower paths too.",
        ms(milliseconds)
    )
}

fn queue(it: &Explanation) -> Vec<String> {
    let Some(queue) = it.queue else {
        return vec![
            "Nothing waits in front of the paths: each packet is sent when it comes.".to_owned(),
        ];
    };
    let mut sentences = vec![match (queue.waiting, queue.drains_ms) {
        (0, _) => "Nothing waits in front of the paths.".to_owned(),
        (waiting, Some(drains)) => format!(
            "In front of the paths {} ({}) wait, which takes {} ms to send.",
            count(waiting, "packet"),
            bytes(queue.waiting_bytes),
            ms(drains)
        ),
        (waiting, None) => format!(
            "In front of the paths {} ({}) wait.",
            count(waiting, "packet"),
            bytes(queue.waiting_bytes)
        ),
    }];
    let drops = [
        (queue.dropped_delay, "dropped because they had waited too long"),
        (queue.dropped_full, "dropped because too much waited"),
        (queue.marked, "marked as congested (ECN) in place of being dropped"),
    ];
    let drops: Vec<String> = drops
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, why)| format!("{number} {why}"))
        .collect();
    match drops.as_slice() {
        [] => sentences.push("No packet was dropped or marked there.".to_owned()),
        drops => sentences.push(format!("Packets there: {}.", drops.join(", "))),
    }
    if queue.equal_delay_ms > 0.0 {
        sentences.push(equal_delay(queue.equal_delay_ms));
    }
    if queue.acks_thinned > 0 {
        sentences.push(format!(
            "{} of TCP connections that begin had no need to be sent, because a later one said the same.",
            count(queue.acks_thinned, "acknowledgement")
        ));
    }
    sentences
}

fn order(it: &Explanation) -> Vec<String> {
    let order = it.order;
    if order.delivered == 0 && order.held == 0 {
        return vec!["From the peer nothing came.".to_owned()];
    }
    let mut facts = Vec::new();
    if order.reordered > 0 {
        facts.push(format!("{} had to wait for earlier ones", order.reordered));
    }
    if order.repaired > 0 {
        facts.push(format!("{} came out of turn where one was missing", order.repaired));
    }
    if order.late > 0 {
        facts.push(format!("{} came after they had been given up", order.late));
    }
    if order.lost > 0 {
        facts.push(format!("{} never came in time and count as lost", order.lost));
    }
    let facts = if facts.is_empty() { "all in order".to_owned() } else { facts.join(", ") };
    let mut sentences =
        vec![format!("From the peer came {}: {facts}.", count(order.delivered, "packet"))];
    if order.held > 0 {
        let wait = if order.held == 1 { "waits" } else { "wait" };
        sentences.push(format!("{} {wait} at this moment.", order.held));
    }
    sentences
}

#[cfg(test)]
mod tests;
