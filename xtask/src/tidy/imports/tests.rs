use super::*;

/// The cycles of a crate of these files below `c/src`, each as its chain and the edge to cut.
fn cycles<const N: usize>(sources: [(&str, &str); N]) -> Vec<(String, String)> {
    found(sources, Depth::All).into_iter().map(|found| (found.what, found.remedy)).collect()
}

fn found<const N: usize>(sources: [(&str, &str); N], depth: Depth) -> Vec<Violation> {
    let sources = sources.map(|(path, text)| (format!("c/src/{path}"), text));
    let files = Files::from(sources.each_ref().map(|(path, text)| (path.as_str(), *text)));
    check_crate(&files, Path::new("c"), depth)
}

#[test]
fn modules_in_an_order_are_kept() {
    let found = cycles([
        ("lib.rs", "mod a; mod b; mod c; pub use a::A;"),
        ("a.rs", "use crate::b::B; use std::fmt; use other::C; pub struct A(B, crate::c::C);"),
        ("b.rs", "pub struct B(super::c::C);"),
        ("c.rs", "pub struct C; impl C { fn c(&self) -> Self { Self } }"),
    ]);
    assert_eq!(found, []);
}

#[test]
fn a_cycle_is_shown_as_a_chain_with_its_cheapest_edge() {
    let found = cycles([
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::b::{\n    B,\n    b,\n};"),
        ("b.rs", "use crate::c::{C, c}; pub struct B; pub fn b() {}"),
        ("c.rs", "\nuse crate::a; pub struct C; pub fn c() { a::a(); a::a() } "),
    ]);
    let [(chain, cut)] = &found[..] else { panic!("{found:?}") };
    assert_eq!(
        chain,
        "import cycle: c uses a (c/src/c.rs:2), a uses b (c/src/a.rs:2), b uses c (c/src/b.rs:1)"
    );
    assert_eq!(cut, "cheapest to cut is c -> a, which is `a` (c/src/c.rs:2)");
}

#[test]
fn every_edge_that_must_be_cut_is_reported() {
    let found = cycles([
        ("lib.rs", "mod a; mod b; mod c; mod d;"),
        ("a.rs", "use crate::b::B; use crate::c::C; pub struct A;"),
        ("b.rs", "use crate::a::A; pub struct B;"),
        ("c.rs", "use crate::a::A; use crate::d::D; pub struct C;"),
        ("d.rs", "pub struct D;"),
    ]);
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn what_is_deep_inside_counts_for_the_modules_around_it() {
    let sources = [
        ("lib.rs", "mod a; mod b;"),
        ("a/mod.rs", "mod inner;"),
        ("a/inner.rs", "use crate::b::B; mod deep { pub struct D(super::super::super::b::B); }"),
        ("b.rs", "mod user; mod held; pub struct B;"),
        ("b/user.rs", "use crate::a::other::Other;"),
        ("b/held.rs", ""),
    ];
    let found = cycles(sources);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].0.contains("b uses a (c/src/b/user.rs:1)"), "{found:?}");
}

#[test]
fn cycles_below_the_root_are_found_where_they_are_asked_for() {
    let sources = [
        ("lib.rs", "mod a;"),
        ("a/mod.rs", "mod b; mod c;"),
        ("a/b.rs", "use super::c::C; pub struct B;"),
        ("a/c.rs", "use super::b::B; pub struct C;"),
    ];
    assert_eq!(found(sources, Depth::All).len(), 1);
    assert_eq!(found(sources, Depth::Folders), []);
}

#[test]
fn a_use_counts_for_the_module_that_defines_what_is_used() {
    let passed_on = |user| {
        cycles([
            ("lib.rs", "mod a; mod b; mod c; mod all;"),
            ("a.rs", "pub use crate::b::B as Renamed; pub use crate::b::B;"),
            ("all.rs", "pub use crate::a::*;"),
            ("b.rs", "use crate::c::C; pub struct B;"),
            ("c.rs", user),
        ])
    };
    for user in [
        "use crate::a::B; pub struct C;",
        "use crate::a::Renamed as Other; pub struct C;",
        "use crate::{a::{self, B as _}}; pub struct C;",
        "use crate::all::*; pub struct C(B);",
        "pub struct C(crate::all::Renamed);",
        "use super::a as renamed; pub struct C(renamed::B);",
    ] {
        let found = passed_on(user);
        assert_eq!(found.len(), 1, "{user}: {found:?}");
        assert!(found[0].0.contains("c uses b"), "{user}: {found:?}");
    }
    assert_eq!(passed_on("use crate::a; use crate::all::*; pub struct C;"), []);
}

#[test]
fn a_parent_may_use_its_children_or_be_used_by_them() {
    let child = "use super::P; pub struct C; pub fn c() {}";
    for (parent, count) in [
        ("mod c; pub struct P;", 0),
        ("mod c; pub use c::C; pub struct P;", 0),
        ("mod c; use c::C; pub struct P;", 1),
        ("mod c; pub use c::C; pub struct P(C);", 1),
        ("mod c; pub struct P; fn p() { c::c() }", 1),
    ] {
        let found = cycles([("lib.rs", "mod p;"), ("p.rs", parent), ("p/c.rs", child)]);
        assert_eq!(found.len(), count, "{parent}: {found:?}");
        let found = cycles([("lib.rs", parent), ("c.rs", child)]);
        assert_eq!(found.len(), count, "{parent} as the root: {found:?}");
        let found = cycles([("lib.rs", "mod p;"), ("p.rs", parent), ("p/c.rs", "pub struct C;")]);
        assert_eq!(found, [], "{parent} alone");
    }
}

#[test]
fn names_are_found_wherever_code_can_have_them() {
    for user in [
        "use crate::b::B;",
        "fn f() { use crate::b::B; }",
        "fn f() { crate::b::b() }",
        "fn f(b: &dyn Fn(super::b::B)) {}",
        "impl From<crate::b::B> for A {}",
        "fn f() { println!(\"{}\", [crate::b::b(), 1]) }",
        "macro_rules! m { () => { $crate::b::b() } }",
        "use crate::*; fn f() { b::b() }",
        "type A = <crate::b::B as Iterator>::Item;",
        "#[cfg(not(test))] use crate::b::B;",
    ] {
        let found = cycles([
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", &format!("{user} pub struct A;")),
            ("b.rs", "use super::a::A; pub struct B; pub fn b() {}"),
        ]);
        assert_eq!(found.len(), 1, "{user}");
    }
}

#[test]
fn tests_comments_and_other_names_are_no_use() {
    for user in [
        "#[cfg(test)] mod tests { use crate::b::B; }",
        "#[cfg(test)] mod tests;",
        "#[cfg(test)] use crate::b::B;",
        "#[cfg(test)] impl A { fn f() { crate::b::b() } }",
        "impl A { #[cfg(test)] fn f() { crate::b::b() } }",
        "// use crate::b::B;",
        "/// [`crate::b::B`]\nfn f() {}",
        "const NAME: &str = \"crate::b::B\";",
        "use ::b::B;",
        "use b::B;",
        "use crate::b;",
        "fn f(b: u8) -> u8 { println!(\"{b}\", b.b, b: B); b }",
        "struct B; fn f(b: B) {}",
    ] {
        let found = cycles([
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", &format!("{user}\npub struct A;")),
            ("a/tests.rs", "use crate::b::B;"),
            ("b.rs", "use super::a::A; pub struct B; pub fn b() {}"),
        ]);
        assert_eq!(found, [], "{user}");
    }
}

#[test]
fn a_function_and_a_module_of_one_name_are_told_apart() {
    let sources = |user| {
        [
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", user),
            ("b.rs", "pub mod open { pub fn inner() {} } pub use crate::c::open;"),
            ("c.rs", "use crate::a::A; pub fn open() {}"),
        ]
    };
    assert_eq!(cycles(sources("fn f() { crate::b::open::inner() } pub struct A;")), []);
    assert_eq!(cycles(sources("pub struct A; fn f() { crate::b::other(); }")), []);
    let direct = cycles([
        ("lib.rs", "mod a; mod open; pub fn open() {}"),
        ("a.rs", "use crate::open; fn f() { open() }"),
        ("open.rs", "use crate::a::A; pub fn open() {}"),
    ]);
    assert_eq!(direct, [], "the function of the root is meant");
}

#[test]
fn what_cannot_be_read_is_reported() {
    let places = |sources: [(&str, &str); 2]| -> Vec<_> {
        found(sources, Depth::All).into_iter().map(|found| found.place).collect()
    };
    assert_eq!(places([("lib.rs", "mod a;"), ("b.rs", "")]), ["c/src/a/mod.rs"]);
    assert_eq!(places([("lib.rs", "mod a;"), ("a.rs", "fn {")]), ["c/src/a.rs"]);
    assert_eq!(places([("main.rs", ""), ("b.rs", "")]), ["c/src/lib.rs"]);
}

#[test]
fn a_re_export_of_itself_ends() {
    let found = cycles([
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub use crate::b::X; pub use crate::b::*;"),
        ("b.rs", "pub use crate::a::X; pub use crate::a::*; fn f() { X; Y }"),
    ]);
    assert_eq!(found, []);
}

#[test]
fn each_crate_is_looked_at() {
    for (folder, _) in CRATES {
        let of = |file: &str| format!("{folder}/src/{file}");
        let files = Files::from([
            (&*of("lib.rs"), "mod a; mod b;"),
            (&*of("a.rs"), "use crate::b::B; pub struct A;"),
            (&*of("b.rs"), "use crate::a::A; pub struct B;"),
        ]);
        let found = check(&files);
        let cycles = found.iter().filter(|found| found.what.starts_with("import cycle"));
        assert_eq!(cycles.count(), 1, "{folder}");
        assert_eq!(found.len(), CRATES.len(), "a crate that is not there is reported");
    }
}
