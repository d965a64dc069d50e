//! The text formats in which a page can be.

use crate::http;

/// A text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// OpenMetrics 1.0.0.
    OpenMetrics,
    /// The text format 0.0.4 of Prometheus.
    Text,
}

impl Format {
    /// Both.
    pub(super) const ALL: [Self; 2] = [Self::OpenMetrics, Self::Text];

    /// The format that a request with this `Accept` wants. Where it takes both alike, or neither, it is the
    /// older one, which every reader knows.
    pub(super) fn wanted(accept: Option<&str>) -> Self {
        let open = http::quality(accept, "application/openmetrics-text", "1.0.0");
        let text = http::quality(accept, "text/plain", "0.0.4");
        if open > text { Self::OpenMetrics } else { Self::Text }
    }

    /// Its media type.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}
