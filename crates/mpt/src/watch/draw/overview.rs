//! All tunnels, connections and paths under each other.

use std::collections::BTreeMap;

use mpt_control::{ConnectionState, PathState, TunnelStatus};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span, Text};

use super::super::list::{Row, What, reason, word};
use super::super::model::{ConnectionRates, Flow, Model, TunnelRates};
use super::super::ui::Ui;
use super::columns::Columns;
use super::text::{Shades, shorten, spread};
use crate::output::{self, bytes, counts, percent, rate, short};

/// Fills `area` with the titles and the rows around the one that is selected.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, ui: &mut Ui) {
    let shades = Shades::new(ui.colour);
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let rows = ui.rows(model);
    let columns = Columns::new(width, longest_name(model), is_weighted(model));
    let mut text = Text::from(columns.titles(shades));
    if rows.is_empty() {
        text.push_line(Line::raw(match ui.filter() {
            "" => "  nothing is configured".to_owned(),
            filter => format!("  nothing contains `{filter}`"),
        }));
    }

    let height = height.saturating_sub(1);
    let selected = ui.selected(&rows);
    let top = ui.scroll_list(selected, rows.len(), height);
    for (place, row) in rows.iter().enumerate().skip(top).take(height) {
        let selected = selected == Some(place);
        let mark = if selected { '>' } else { ' ' };
        let mut line = line(row, mark, &columns, width, shades);
        if selected {
            line = line.patch_style(Style::new().add_modifier(Modifier::REVERSED));
        }
        text.push_line(line);
    }
    frame.render_widget(text, area);
}

/// Whether weights mean something to any connection.
fn is_weighted(model: &Model) -> bool {
    let mut connections = model.status.tunnels.iter().flat_map(|tunnel| &tunnel.connections);
    connections.any(ConnectionState::goes_by_weights)
}

fn longest_name(model: &Model) -> usize {
    let connections = model.status.tunnels.iter().flat_map(|tunnel| &tunnel.connections);
    let paths = connections.flat_map(|connection| &connection.paths);
    paths.map(|path| path.name.chars().count()).max().unwrap_or(0)
}

fn line(
    row: &Row<'_>,
    mark: char,
    columns: &Columns,
    width: usize,
    shades: Shades,
) -> Line<'static> {
    match row.what {
        What::Tunnel(rates) => tunnel_line(mark, row.tunnel, rates, width, shades),
        What::Connection(connection, rates) => {
            connection_line(mark, connection, rates, width, shades)
        }
        What::Order(connection, rates) => order_line(connection, rates, width),
        What::Path(_, path, rates) => columns.path(mark, path, rates, shades),
        What::Cause(path) => {
            let reason = reason(path).unwrap_or_default();
            let text = format!("    {} is {}: {reason}", path.name, word(path));
            Line::styled(shorten(&text, width), shades.state(word(path)))
        }
        What::Quota(path, quota) => {
            let text = format!("    {} quota: {}", path.name, output::quota(quota));
            Line::raw(shorten(&text, width))
        }
    }
}

fn tunnel_line(
    mark: char,
    tunnel: &TunnelStatus,
    rates: &TunnelRates,
    width: usize,
    shades: Shades,
) -> Line<'static> {
    let mut left = vec![
        Span::styled(format!("{mark}tunnel {}", tunnel.name), shades.title()),
        Span::raw(format!("  mtu {}", tunnel.mtu)),
    ];
    left.extend(tunnel.addresses.iter().map(|address| Span::raw(format!("  {address}"))));
    let dropping = rates.drops.filter(|&drops| drops > 0.0);
    let right = dropping.map_or_else(String::new, |drops| format!("drops {}/s", short(drops)));
    spread(left, &right, width)
}

/// A connection with its state and totals.
pub(super) fn connection_line(
    mark: char,
    connection: &ConnectionState,
    rates: &ConnectionRates,
    width: usize,
    shades: Shades,
) -> Line<'static> {
    // What is taken out of use is not missed.
    let wanted = || connection.paths.iter().filter(|path| path.state != "off");
    let up = wanted().filter(|path: &&PathState| path.state == "up").count();
    let all = wanted().count();
    let style = shades.state(match up {
        0 => "down",
        _ if up < all => "probing",
        _ => "up",
    });
    let mut left = vec![
        Span::styled(format!("{mark}{}", connection.name), shades.title()),
        Span::styled(format!("  {up} of {all} up"), style),
    ];
    let facts = [
        (!connection.scheduler.is_empty()).then(|| connection.scheduler.clone()),
        connection.r#match.as_ref().map(|wanted| format!("match {wanted}")),
        connection.accepted_by.as_ref().map(|name| format!("accepted by {name}")),
        (connection.memory_bytes > 0).then(|| format!("memory {}", bytes(connection.memory_bytes))),
    ];
    left.extend(facts.into_iter().flatten().map(|fact| Span::raw(format!("  {fact}"))));
    let right = match rates.flow {
        Some(Flow { sent, received, .. }) => format!("out {}  in {}", rate(sent), rate(received)),
        None => String::new(),
    };
    spread(left, &right, width)
}

/// How a connection brings its packets into order, and what it drops.
pub(super) fn order_line(
    connection: &ConnectionState,
    rates: &ConnectionRates,
    width: usize,
) -> Line<'static> {
    let reorder = &connection.reorder;
    let mut parts = Vec::new();
    if reorder.window == 0 {
        parts.push("  order: not restored".to_owned());
    } else {
        parts.push(format!("  order: holds {} of {}", reorder.held, reorder.window));
        let lost: BTreeMap<String, u64> = reorder
            .counters
            .iter()
            .filter_map(|(name, &count)| Some((name.strip_prefix("lost_")?.to_owned(), count)))
            .collect();
        parts.push(format!(", lost {}", lost.values().sum::<u64>()));
        let reasons = counts(&lost);
        if !reasons.is_empty() {
            parts.push(format!(" ({reasons})"));
        }
        let late = reorder.counters.get("late").copied().unwrap_or(0);
        if late > 0 {
            parts.push(format!(", late {late}"));
        }
    }
    if connection.reordering.packets > 0 {
        parts.push(format!(", reordered {} %", percent(connection.reordering.ratio)));
    }
    let dropping = rates.flow.map(|flow| flow.drops).filter(|&drops| drops > 0.0);
    let right = dropping.map_or_else(String::new, |drops| format!("drops {}/s", short(drops)));
    spread(parts.into_iter().map(Span::raw).collect(), &right, width)
}
