//! The first line and the last.

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::super::model::{Lost, Model};
use super::super::ui::{Mode, Ui};
use super::text::{Shades, spread};
use crate::output::{bytes, duration};

/// The daemon; or, as long as it does not answer, why.
pub(super) fn head(model: &Model, ui: &Ui, width: u16) -> Line<'static> {
    let shades = Shades::new(ui.colour);
    let rhythm = format!("every {} s", ui.interval.as_secs_f64());
    if let Some(Lost { reason, seconds }) = &model.lost {
        let text = format!(" no answer for {}: {reason} ", duration(*seconds));
        let style = shades.trouble().add_modifier(Modifier::REVERSED);
        let asking = format!("asking {rhythm}");
        return spread(vec![Span::styled(text, style)], &asking, usize::from(width));
    }
    let status = &model.status;
    let mut left = vec![
        Span::styled(format!("mpt {}", status.version), shades.title()),
        Span::raw(format!("  up {}", duration(status.uptime_seconds))),
        Span::raw(format!("  process {}", status.pid)),
    ];
    let memory: u64 = status.tunnels.iter().map(|tunnel| tunnel.memory_bytes).sum();
    if memory > 0 {
        left.push(Span::raw(format!("  memory {}", bytes(memory))));
    }
    for tunnel in status.failed_tunnels.keys() {
        left.push(Span::styled(format!("  tunnel {tunnel} does not run"), shades.trouble()));
    }
    for tunnel in status.stalled_tunnels() {
        let text = format!("  tunnel {tunnel} does not answer");
        left.push(Span::styled(text, shades.trouble()));
    }
    let right = if ui.is_paused() { "paused: p resumes".to_owned() } else { rhythm };
    spread(left, &right, usize::from(width))
}

/// The keys that matter at this moment, or the filter being typed.
pub(super) fn foot(ui: &Ui, width: u16) -> Line<'static> {
    let filter =
        if ui.filter().is_empty() { String::new() } else { format!("only `{}`", ui.filter()) };
    let (left, right) = match ui.mode() {
        Mode::List => {
            ("q quit  j/k select  Enter focus  / filter  c brief  p pause  ? help", filter)
        }
        Mode::Focus { .. } => ("Esc back  j/k scroll  Tab next  p pause  ? help", String::new()),
        Mode::Help { .. } => ("any key goes back", String::new()),
        Mode::Filter { .. } => {
            let typed = format!("/{}_", ui.filter());
            let hint = "Enter keep  Esc undo";
            return spread(vec![Span::raw(typed)], hint, usize::from(width));
        }
    };
    let style = Style::new().add_modifier(Modifier::DIM);
    spread(vec![Span::styled(left, style)], &right, usize::from(width))
}
