//! A prediction for a person.

use super::Prediction;

/// The figures in a line each, then how they were found.
pub fn report(prediction: &Prediction) -> String {
    let goodput = match prediction.goodput_mbps {
        Some(goodput) => format!("{goodput:.2} Mbit/s"),
        None => "not foreseeable".into(),
    };
    let mut lines = vec![
        format!("goodput   {goodput} ({})", prediction.method.name()),
        format!("bound by  {}", prediction.binding.name()),
        format!(
            "needs     a reorder window of {} packets and a hold time of {:.1} ms",
            prediction.window_packets,
            prediction.hold_seconds * 1e3
        ),
    ];
    if let Some([low, high]) = prediction.goodput_range_mbps {
        lines.insert(1, format!("          random range of a single run {low:.2} to {high:.2}"));
    }
    if let Some(startup) = prediction.startup_seconds {
        lines.push(format!("start-up  {startup:.1} s"));
    }
    lines.extend(prediction.terms.iter().map(|term| format!("  {term}")));
    lines.join("\n")
}
