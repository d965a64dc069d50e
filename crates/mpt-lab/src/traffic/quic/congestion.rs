//! What a QUIC sender may control its congestion window with.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};

/// A congestion controller of the QUIC library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Congestion {
    /// What the library calls BBR, and experimental. Unlike BBR (draft-cardwell-iccrg-bbr-congestion-control) it
    /// takes one packet over the time between two acknowledgements for the rate, keeps the highest one for good, and
    /// is not paced by it. So it soon keeps several round trips in flight, and sends the more, the more is lost.
    Bbr,
    /// CUBIC, RFC 8312: what the library takes by itself.
    #[default]
    Cubic,
    /// NewReno as of RFC 9002 section 7.
    NewReno,
}

/// There is no congestion controller of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("QUIC has no congestion control '{0}' here: choose cubic, bbr or newreno")]
pub struct UnknownCongestion(String);

impl Congestion {
    /// The name that experiments give it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bbr => "bbr",
            Self::Cubic => "cubic",
            Self::NewReno => "newreno",
        }
    }

    /// As the library wants it, with the library's own settings.
    pub(super) fn factory(self) -> Arc<dyn ControllerFactory + Send + Sync> {
        match self {
            Self::Bbr => Arc::new(BbrConfig::default()),
            Self::Cubic => Arc::new(CubicConfig::default()),
            Self::NewReno => Arc::new(NewRenoConfig::default()),
        }
    }
}

impl fmt::Display for Congestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Congestion {
    type Err = UnknownCongestion;

    fn from_str(name: &str) -> Result<Self, UnknownCongestion> {
        [Self::Bbr, Self::Cubic, Self::NewReno]
            .into_iter()
            .find(|congestion| congestion.name() == name)
            .ok_or_else(|| UnknownCongestion(name.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for congestion in [Congestion::Bbr, Congestion::Cubic, Congestion::NewReno] {
            assert_eq!(congestion.to_string().parse(), Ok(congestion));
        }
        let error = "vegas".parse::<Congestion>().unwrap_err();
        assert!(error.to_string().contains("vegas"), "{error}");
    }
}
