//! How the table of settings is written down.
//!
//! [`settings!`] takes the keys of one kind of table, each on a line: its documentation, field, type, how
//! it is read, what holds without it, and what it takes to change it while it runs. From that come the
//! struct that holds the values, reading and writing them, what differs between two, the keys that
//! errors know, and through [`Keys`] the list of settings in `docs/guide.md` and the comments and
//! defaults in `docs/mpt.toml`. A further setting is a further line.

use super::edit::Edit;
use super::keys::Keys;

/// What has a table of settings.
pub(super) trait Tabled: Sized {
    /// What its defaults depend on.
    type Context;
    /// What can be read of it.
    type Read;

    /// Its header and keys.
    const KEYS: Keys;

    /// What holds where the file says nothing; missing is what it must say, and what has a parser of its
    /// own.
    fn defaults(context: Self::Context) -> Self::Read;

    /// What differs between two.
    fn edits(from: &Self, to: &Self) -> Vec<Edit<Self>>;
}

/// Makes a struct of settings from their table: see the module's documentation.
///
/// How a setting is read is one of
/// - `required(kind, "example")`: an error if it is missing. A third argument is added to the remedy.
/// - `default(kind, value)`: left out it is `value`, which may depend on the context and on settings that
///   stand before it, as `Option`s. Then a third argument says in words what it is.
/// - `optional(kind, "example")`: an `Option`. A third argument says what holds without it.
/// - `own(rows, write)`: reading is left to the code beside the table, which sets the field.
/// - `unsaid(value)`: no file can say it.
///
/// What it takes to change it is an `Effect`; or `Apart` for what is compared elsewhere, and `Within` for
/// settings that are themselves made from a table.
macro_rules! settings {
    (
        $(#[$meta:meta])*
        $name:ident $header:literal, read as $read:ident, with $cx:ident: $cxty:ty {
            $(
                $(#[doc = $doc:literal])+
                $field:ident $([$key:literal])?: $ty:ty = $how:ident($($args:tt)*), $effect:ident;
            )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) struct $name {
            $($(#[doc = $doc])+ pub(crate) $field: $ty,)+
        }

        #[doc = concat!("What has been read of a [`", stringify!($name), "`]; what is faulty is missing.")]
        #[derive(Debug)]
        pub(in crate::config) struct $read {
            $(pub(in crate::config) $field: Option<$ty>,)+
        }

        impl $read {
            /// All of it, unless something is faulty.
            pub(in crate::config) fn whole(self) -> Option<$name> {
                Some($name { $($field: self.$field?,)+ })
            }
        }

        #[allow(unused_mut, unused_variables, clippy::allow_attributes, reason = "not every table needs all")]
        impl $crate::config::schema::Tabled for $name {
            type Context = $cxty;
            type Read = $read;

            const KEYS: $crate::config::keys::Keys = $crate::config::keys::Keys {
                table: $header,
                rows: &[$($crate::config::schema::how!(
                    rows $how($($args)*) [$crate::config::schema::key!($field $($key)?)] [concat!($($doc),+)] [$ty]
                )),+],
            };

            fn defaults($cx: $cxty) -> $read {
                $(let $field: Option<$ty> = $crate::config::schema::how!(defaults $how($($args)*));)+
                $read { $($field),+ }
            }

            fn edits(from: &Self, to: &Self) -> Vec<$crate::config::edit::Edit<Self>> {
                let mut edits = Vec::new();
                $($crate::config::schema::edit!(
                    $effect [$crate::config::schema::key!($field $($key)?)] [$ty] edits from to $field
                );)+
                edits
            }
        }

        #[allow(unused_mut, unused_variables, clippy::allow_attributes, reason = "not every table needs all")]
        impl $name {
            /// What the table in the file says.
            pub(in crate::config) fn read(
                table: &$crate::config::table::Table<'_>,
                $cx: $cxty,
                problems: &mut $crate::config::report::Problems,
            ) -> $read {
                $(let $field: Option<$ty> = $crate::config::schema::how!(
                    read $how($($args)*) [$crate::config::schema::key!($field $($key)?)] table problems
                );)+
                $read { $($field),+ }
            }

            /// Writes what is not as it would be anyway.
            pub(in crate::config) fn write(
                &self,
                out: &mut $crate::config::writer::Writer,
                $cx: $cxty,
            ) {
                $(let $field: Option<$ty> = Some(Clone::clone(&self.$field));)+
                $($crate::config::schema::how!(
                    write $how($($args)*) [$crate::config::schema::key!($field $($key)?)] out [&self.$field] [$cx] self
                );)+
            }
        }
    };
}

/// The key of a field: its name, unless another is given.
macro_rules! key {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $key:literal) => {
        $key
    };
}

/// What each way of reading means for rows, reading and writing.
macro_rules! how {
    (rows required($kind:expr, $example:literal $(, $hint:literal)?) [$key:expr] [$doc:expr] [$ty:ty]) => {
        $crate::config::keys::Rows::Here(&[$crate::config::keys::Row {
            range: || $crate::config::value::Kind::<$ty>::range(&$kind),
            ..$crate::config::keys::Row::own($key, "", $example, $doc)
        }])
    };
    (rows default($kind:expr, $default:expr) [$key:expr] [$doc:expr] [$ty:ty]) => {
        $crate::config::keys::Rows::Here(&[$crate::config::keys::Row {
            doc: $doc,
            range: || $crate::config::value::Kind::<$ty>::range(&$kind),
            default: || {
                let default: $ty = $default;
                Some($crate::config::written::Written::written(&default))
            },
            ..$crate::config::keys::Row::table($key)
        }])
    };
    (rows default($kind:expr, $default:expr, $shown:literal) [$key:expr] [$doc:expr] [$ty:ty]) => {
        $crate::config::keys::Rows::Here(&[$crate::config::keys::Row {
            doc: $doc,
            range: || $crate::config::value::Kind::<$ty>::range(&$kind),
            shown: Some($shown),
            ..$crate::config::keys::Row::table($key)
        }])
    };
    (rows optional($kind:expr, $example:literal) [$key:expr] [$doc:expr] [$ty:ty]) => {
        $crate::config::schema::how!(rows optional($kind, $example, "none") [$key] [$doc] [$ty])
    };
    (rows optional($kind:expr, $example:literal, $shown:literal) [$key:expr] [$doc:expr] [$ty:ty]) => {
        $crate::config::keys::Rows::Here(&[$crate::config::keys::Row {
            range: || $crate::config::value::Kind::<$ty>::range(&$crate::config::value::some($kind)),
            ..$crate::config::keys::Row::own($key, $shown, $example, $doc)
        }])
    };
    (rows own($rows:expr, $write:expr) $($rest:tt)*) => {
        $rows
    };
    (rows unsaid($value:expr) $($rest:tt)*) => {
        $crate::config::keys::Rows::Here(&[])
    };

    (read required($kind:expr, $example:literal $(, $hint:literal)?) [$key:expr] $table:ident $problems:ident) => {
        $table.required($key, $example, concat!("" $(, "; ", $hint)?), $problems, $kind)
    };
    (read default($kind:expr, $default:expr $(, $shown:literal)?) [$key:expr] $table:ident $problems:ident) => {
        $table.optional($key, $default, $problems, $kind)
    };
    (read optional($kind:expr, $example:literal $(, $shown:literal)?) [$key:expr] $table:ident $problems:ident) => {
        $table.optional($key, None, $problems, $crate::config::value::some($kind))
    };
    (read own($rows:expr, $write:expr) $($rest:tt)*) => {
        None
    };
    (read unsaid($value:expr) $($rest:tt)*) => {
        Some($value)
    };

    (defaults required($($args:tt)*)) => {
        None
    };
    (defaults default($kind:expr, $default:expr $(, $shown:literal)?)) => {
        Some($default)
    };
    (defaults optional($($args:tt)*)) => {
        Some(None)
    };
    (defaults own($($args:tt)*)) => {
        None
    };
    (defaults unsaid($value:expr)) => {
        Some($value)
    };

    (write required($($args:tt)*) [$key:expr] $out:ident [$value:expr] [$cx:expr] $owner:ident) => {
        $out.key($key, $value)
    };
    (write default($kind:expr, $default:expr $(, $shown:literal)?) [$key:expr] $out:ident [$value:expr] [$cx:expr] $owner:ident) => {
        $out.unless($key, $value, &$default)
    };
    (write optional($($args:tt)*) [$key:expr] $out:ident [$value:expr] [$cx:expr] $owner:ident) => {
        $out.some($key, $value)
    };
    (write own($rows:expr, $write:expr) [$key:expr] $out:ident [$value_:expr] [$cx:expr] $owner:ident) => {
        ($write)($owner, $out, $cx)
    };
    (write unsaid($value:expr) $($rest:tt)*) => {};
}

/// What each effect means for the difference.
macro_rules! edit {
    (Apart $($rest:tt)*) => {};
    (Within [$key:expr] [$ty:ty] $edits:ident $from:ident $to:ident $field:ident) => {
        $edits.extend(
            <$ty as $crate::config::schema::Tabled>::edits(&$from.$field, &$to.$field)
                .into_iter()
                .map(|edit| edit.within(|owner: &mut Self| &mut owner.$field)),
        )
    };
    ($effect:ident [$key:expr] [$ty:ty] $edits:ident $from:ident $to:ident $field:ident) => {
        $edits.extend($crate::config::edit::Edit::between(
            $key,
            $crate::config::edit::Effect::$effect,
            &$from.$field,
            &$to.$field,
            |owner: &mut Self| &mut owner.$field,
        ))
    };
}

pub(super) use {edit, how, key, settings};
