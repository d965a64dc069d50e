//! Metrics of one name, kept together as the text format wants them.

use std::collections::HashMap;
use std::fmt::{self, Write as _};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

/// Names and values that identify a series within its family.
pub(super) type Labels = Vec<(&'static str, String)>;

/// All families of a page, in the order in which they were first mentioned.
#[derive(Debug, Default)]
pub(super) struct Families {
    all: Vec<Family>,
    places: HashMap<String, usize>,
}

#[derive(Debug)]
struct Family {
    name: String,
    help: &'static str,
    unit: Option<Unit>,
    kind: MetricType,
    series: Vec<(Labels, Value)>,
}

#[derive(Clone, Copy, Debug)]
enum Value {
    Counter(u64),
    Gauge(f64),
    Info,
}

impl Families {
    /// Adds to a counter family; the text adds the unit and `_total` to its name.
    pub(super) fn counter(
        &mut self,
        name: impl Into<String>,
        unit: Option<Unit>,
        help: &'static str,
        labels: Labels,
        value: u64,
    ) {
        self.add(name.into(), unit, help, MetricType::Counter, (labels, Value::Counter(value)));
    }

    /// Adds to a gauge family; the text adds the unit to its name.
    pub(super) fn gauge(
        &mut self,
        name: impl Into<String>,
        unit: Option<Unit>,
        help: &'static str,
        labels: Labels,
        value: f64,
    ) {
        self.add(name.into(), unit, help, MetricType::Gauge, (labels, Value::Gauge(value)));
    }

    /// Adds to a family that is all labels; the text adds `_info` to its name.
    pub(super) fn info(&mut self, name: &str, help: &'static str, labels: Labels) {
        self.add(name.into(), None, help, MetricType::Info, (labels, Value::Info));
    }

    /// The page in the text format of OpenMetrics 1.0.
    pub(super) fn into_text(self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut page = String::new();
        text::encode(&mut page, &registry).expect("a string takes everything");
        page
    }

    /// The page in the text format 0.0.4 of Prometheus. It knows neither units nor families of information,
    /// and the name of a counter's family has the suffix of its series.
    pub(super) fn into_plain_text(self) -> String {
        let mut page = String::new();
        for family in self.all {
            // Writing to a string cannot fail.
            let _ = family.write_plain(&mut page);
        }
        page
    }

    fn add(
        &mut self,
        name: String,
        unit: Option<Unit>,
        help: &'static str,
        kind: MetricType,
        series: (Labels, Value),
    ) {
        if let Some(&place) = self.places.get(&name) {
            self.all[place].series.push(series);
        } else {
            self.places.insert(name.clone(), self.all.len());
            self.all.push(Family { name, help, unit, kind, series: vec![series] });
        }
    }
}

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for family in &self.all {
            let Family { name, help, unit, kind, series } = family;
            let mut encoder = encoder.encode_descriptor(name, help, unit.as_ref(), *kind)?;
            for (labels, value) in series {
                match value {
                    Value::Info => encoder.encode_info(labels)?,
                    // An empty set of labels would be written as such.
                    Value::Counter(_) | Value::Gauge(_) if labels.is_empty() => {
                        value.encode(&mut encoder)?;
                    }
                    Value::Counter(_) | Value::Gauge(_) => {
                        value.encode(&mut encoder.encode_family(labels)?)?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl Family {
    fn write_plain(&self, page: &mut String) -> fmt::Result {
        let unit = self.unit.as_ref().map_or(String::new(), |unit| format!("_{}", unit.as_str()));
        let (suffix, kind) = match self.kind {
            MetricType::Counter => ("_total", "counter"),
            MetricType::Info => ("_info", "gauge"),
            MetricType::Gauge | MetricType::Histogram | MetricType::Unknown => ("", "gauge"),
        };
        let name = format!("{}{unit}{suffix}", self.name);
        writeln!(page, "# HELP {name} {}", self.help.replace('\\', "\\\\").replace('\n', "\\n"))?;
        writeln!(page, "# TYPE {name} {kind}")?;
        for (labels, value) in &self.series {
            page.push_str(&name);
            for (place, (label, value)) in labels.iter().enumerate() {
                let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
                let before = if place == 0 { '{' } else { ',' };
                write!(page, "{before}{label}=\"{value}\"")?;
            }
            if !labels.is_empty() {
                page.push('}');
            }
            match value {
                Value::Counter(count) => writeln!(page, " {count}")?,
                Value::Gauge(number) if number.is_infinite() => {
                    writeln!(page, " {}Inf", if *number > 0.0 { '+' } else { '-' })?;
                }
                Value::Gauge(number) => writeln!(page, " {number}")?,
                Value::Info => writeln!(page, " 1")?,
            }
        }
        Ok(())
    }
}

impl Value {
    fn encode(self, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
        match self {
            Self::Counter(value) => encoder.encode_counter::<NoLabelSet, _, f64>(&value, None),
            Self::Gauge(value) => encoder.encode_gauge(&value),
            Self::Info => Ok(()),
        }
    }
}
