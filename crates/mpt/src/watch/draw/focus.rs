//! One connection with everything that is known about it.

use mpt_control::{ConnectionState, PathState, TunnelStatus};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Text};

use super::super::list::{reason, word};
use super::super::model::{ConnectionRates, Model};
use super::super::ui::Ui;
use super::columns::Columns;
use super::overview::{connection_line, order_line};
use super::text::Shades;
use crate::output::{bytes, counts, distributions, duration, order, quota, rate, wrap};

/// Fills `area` with what is known about a connection, named with its tunnel.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    model: &Model,
    ui: &mut Ui,
    (tunnel, connection): (&str, &str),
) {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let lines = match model.connection(tunnel, connection) {
        Some((tunnel, connection, rates)) => {
            lines(tunnel, connection, rates, width, Shades::new(ui.colour))
        }
        None => vec![Line::raw(format!("  connection {connection} was removed: Esc goes back"))],
    };
    let top = ui.scroll_focus(lines.len(), height);
    let shown: Vec<Line<'_>> = lines.into_iter().skip(top).take(height).collect();
    frame.render_widget(Text::from(shown), area);
}

fn lines(
    tunnel: &TunnelStatus,
    connection: &ConnectionState,
    rates: &ConnectionRates,
    width: usize,
    shades: Shades,
) -> Vec<Line<'static>> {
    let weighted = connection.goes_by_weights();
    let longest = connection.paths.iter().map(|path| path.name.chars().count()).max();
    let columns = Columns::new(width, longest.unwrap_or(0), weighted);
    let mut lines = vec![
        connection_line(' ', connection, rates, width, shades),
        order_line(connection, rates, width),
        columns.titles(shades),
    ];
    for (path, rates) in connection.paths.iter().zip(&rates.paths) {
        lines.push(columns.path(' ', path, rates, shades));
    }
    lines.push(Line::raw(""));
    let facts = facts(tunnel, connection).into_iter();
    let paths = connection.paths.iter().map(|path| details(path, weighted));
    let text = facts.chain(paths).flat_map(|fact| wrap(&fact, width, "  "));
    lines.extend(text.map(Line::raw));
    lines
}

/// What is known about the connection itself.
fn facts(tunnel: &TunnelStatus, connection: &ConnectionState) -> Vec<String> {
    let mut facts = vec![format!("  tunnel {}, profile {}", tunnel.name, connection.profile)];
    if !connection.peer.is_empty() {
        facts.push(format!("  peer {}", connection.peer.join(" ")));
    }
    if !connection.networks.is_empty() {
        facts.push(format!("  networks {}", connection.networks.join(" ")));
    }
    let counters = &connection.counters;
    facts.push(format!(
        "  transmitted {} packets ({}), received {} ({})",
        counters.transmitted.packets,
        bytes(counters.transmitted.bytes),
        counters.received.packets,
        bytes(counters.received.bytes)
    ));
    let reorder = &connection.reorder;
    if reorder.window > 0 {
        facts.push(format!(
            "  max delay {} s, early release {}, late {}",
            reorder.max_delay,
            if reorder.early_release { "on" } else { "off" },
            reorder.late
        ));
    }
    for (title, counts) in
        [("reorder", counts(&reorder.counters)), ("drops", counts(&connection.drops))]
    {
        if !counts.is_empty() {
            facts.push(format!("  {title}: {counts}"));
        }
    }
    facts.extend(order(&connection.reordering).map(|order| format!("  arrivals: {order}")));
    let distributions = distributions(&connection.reordering).into_iter();
    facts.extend(distributions.map(|distribution| format!("    {distribution}")));
    facts
}

/// What the columns do not say.
fn details(path: &PathState, weighted: bool) -> String {
    let mut facts = Vec::new();
    facts.extend(reason(path).map(|reason| format!("{}: {reason}", word(path))));
    facts.push(format!("from {} to {}", path.local, path.remote));
    facts.extend(path.interface.as_ref().map(|interface| format!("on {interface}")));
    facts.extend(weighted.then(|| format!("weight {}", path.weight)));
    facts.push(format!("mtu {}", path.mtu));
    facts.push(match path.last_heard_seconds {
        Some(seconds) => format!("heard {} ago", duration(seconds)),
        None => "never heard".to_owned(),
    });
    facts.extend(path.quota.as_ref().map(|used| format!("quota: {}", quota(used))));
    facts.extend(path.lost.map(|lost| format!("{lost} lost towards this host")));
    facts.extend(path.rate.map(|bits| format!("egress rate {}", rate(bits as f64))));
    facts.extend(order(&path.reordering).map(|order| format!("arrivals: {order}")));
    if !path.pins.is_empty() {
        facts.push(format!("pinned: {}", path.pins.join(" ")));
    }
    let drops = counts(&path.drops);
    if !drops.is_empty() {
        facts.push(format!("drops: {drops}"));
    }
    format!("  path {}: {}", path.name, facts.join(", "))
}
