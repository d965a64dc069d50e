//! The result for a person.

use crate::output::table::align;
use crate::results::{Check, SelfTest};

/// A table of the checks, and the ceiling.
pub fn text(selftest: &SelfTest) -> String {
    let head = ["", "set", "got", "accepted", ""].map(str::to_owned).to_vec();
    let rows: Vec<_> = std::iter::once(head).chain(selftest.checks.iter().map(row)).collect();
    let mut lines = align(&rows);
    lines.push(format!(
        "ceiling: {} Mbit/s over two links; experiments stay below half of it",
        selftest.ceiling_mbps
    ));
    lines.join("\n")
}

fn row(check: &Check) -> Vec<String> {
    let Check { name, set, got, tolerance, unit, passed } = check;
    let verdict = if *passed { "ok" } else { "FAILED" };
    vec![
        name.clone(),
        format!("{set} {unit}"),
        format!("{got:.3} {unit}"),
        format!("± {tolerance:.2} {unit}"),
        verdict.into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_check_stands_out() {
        let check = |name: &str, got, passed| Check {
            name: name.into(),
            set: 10.0,
            got,
            tolerance: 0.3,
            unit: "ms".into(),
            passed,
        };
        let checks = vec![check("delay", 10.1, true), check("other", 11.0, false)];
        let text = text(&SelfTest { ceiling_mbps: 1900.0, checks });
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].ends_with("10.100 ms  ± 0.30 ms      ok"), "{text}");
        assert!(lines[2].ends_with("FAILED"), "{text}");
        assert!(lines[3].starts_with("ceiling: 1900 Mbit/s"), "{text}");
    }
}
