use super::*;
use std::fs;

use mpt_proto::{InvitationSecret, PrivateKey};

fn key(number: u8) -> PublicKey {
    PrivateKey::new([number; 32]).public()
}

/// A folder, and the clients in it.
struct Test {
    folder: tempfile::TempDir,
    clients: Clients,
    next: u32,
}

impl Test {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let clients = Clients::new(folder.path(), AcceptId(1));
        Self { folder, clients, next: 0 }
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).expect("written");
    }

    fn client(&self, name: &str, number: u8, networks: &str) {
        let text = format!(
            "public_key = \"{}\"\naddresses = [\"10.9.0.{number}\"]\nnetworks = [{networks}]\n",
            key(number)
        );
        self.write(&format!("{name}.toml"), &text);
    }

    fn reload(&mut self) -> Changes {
        let own = ("10.9.0.1".parse().expect("an address"), "this host".to_owned());
        let others = [(Prefix { addr: own.0, len: 32 }, own.1)];
        self.clients.reload(&mut self.next, &others).expect("a folder")
    }

    fn names(&self) -> Vec<&str> {
        self.clients.iter().map(|(name, _)| name).collect()
    }
}

#[test]
fn what_changes_is_told_and_nothing_else() {
    let mut test = Test::new();
    for (name, number) in [("van", 2), ("bus", 3), ("car", 4)] {
        test.client(name, number, "");
    }
    test.write(".tmp.toml", "no client");
    test.write("notes", "no client");
    let changes = test.reload();
    assert_eq!((changes.add.len(), changes.remove.len(), changes.faults.len()), (3, 0, 0));
    assert_eq!(changes.lines, ["client bus: added", "client car: added", "client van: added"]);
    assert!(test.reload().lines.is_empty());
    let id = |test: &Test, name: &str| test.clients.by_name[name].id;
    let (van, bus) = (id(&test, "van"), id(&test, "bus"));
    fs::remove_file(test.folder.path().join("van.toml")).expect("removed");
    test.client("bus", 3, "\"192.168.7.0/24\"");
    let changes = test.reload();
    assert_eq!(changes.lines, ["client van: removed", "client bus: changed"]);
    assert_eq!(changes.remove, HashSet::from([van, bus]));
    assert_eq!(changes.add.len(), 1);
    assert_ne!(changes.add[0].id, bus, "a number is not used again");
    assert_eq!(test.names(), ["bus", "car"]);
}

#[test]
fn a_faulty_file_leaves_what_was_there_and_the_others() {
    let mut test = Test::new();
    test.client("van", 2, "");
    test.reload();
    test.write("van.toml", "addresses = 7\n");
    test.client("bus", 3, "");
    test.write("no good.toml", "");
    let changes = test.reload();
    assert_eq!(changes.lines, ["client bus: added"]);
    assert_eq!(test.names(), ["bus", "van"]);
    let [bad_name, bad_file] = &changes.faults[..] else { panic!("{:?}", changes.faults) };
    assert!(bad_name.contains("`no good` is no name"), "{bad_name}");
    assert!(bad_file.contains("van.toml:1:"), "{bad_file}");
}

#[test]
fn no_client_gets_inner_addresses_of_another_one() {
    let mut test = Test::new();
    test.client("a", 2, "\"192.168.0.0/16\"");
    test.client("b", 3, "");
    assert!(test.reload().faults.is_empty());
    for (networks, value, owner) in [
        ("\"192.168.7.0/24\"", "192.168.7.0/24", "client a"),
        ("\"192.0.0.0/8\"", "192.0.0.0/8", "client a"),
        ("\"10.9.0.3/32\"", "10.9.0.3", "client b"),
        ("\"10.9.0.0/24\"", "10.9.0.0/24", ""),
        ("\"10.9.0.1/32\"", "10.9.0.1", "this host"),
    ] {
        // In the alphabet it comes first, but the others were there before.
        test.client("0", 9, networks);
        let faults = test.reload().faults;
        let says = format!("0.toml:3: {value} belongs to {owner}");
        assert!(faults.len() == 1 && faults[0].contains(&says), "{faults:?}");
        assert_eq!(test.names(), ["a", "b"]);
    }
    test.client("0", 9, "\"192.169.0.0/16\", \"192.169.7.0/24\"");
    assert!(test.reload().faults.is_empty(), "its own may lie within each other");
    let text = format!("public_key = \"{}\"\naddresses = [\"10.9.0.7\"]\n", key(3));
    test.write("same.toml", &text);
    let faults = test.reload().faults;
    assert!(faults[0].contains("same.toml:1:") && faults[0].contains("client b"), "{faults:?}");
}

/// A client that was invited.
fn invited(test: &Test) -> String {
    let text = format!(
        "# Tuesday\naddresses = [\"10.9.0.2\"]\ninvitation = \"{}\"\ninvitation_expires = 2100-01-01T00:00:00Z\n",
        InvitationSecret::new([7; 32]).hash()
    );
    test.write("van.toml", &text);
    text
}

#[test]
fn a_used_invitation_leaves_the_key_in_the_file() {
    let mut test = Test::new();
    invited(&test);
    let changes = test.reload();
    let KnownBy::Invitation { .. } = changes.add[0].known_by else { panic!("{changes:?}") };
    let id = changes.add[0].id;
    test.clients.pin(id, key(5));
    assert!(test.clients.has_unsaved());
    assert_eq!(test.clients.core()[0].known_by, KnownBy::Key(key(5)), "before it is written");
    assert!(test.reload().lines.is_empty(), "what the file says is out of date");
    assert!(test.clients.save().is_empty() && !test.clients.has_unsaved());
    let text = fs::read_to_string(test.folder.path().join("van.toml")).expect("a file");
    let expected = format!("public_key = \"{}\"\n# Tuesday\naddresses = [\"10.9.0.2\"]\n", key(5));
    assert_eq!(text, expected);
    assert!(test.reload().lines.is_empty());
    let mut after = Clients::new(test.folder.path(), AcceptId(1));
    let changes = after.reload(&mut 0, &[]).expect("a folder");
    assert_eq!(changes.add[0].known_by, KnownBy::Key(key(5)), "after a restart");
    assert_eq!(fs::read_dir(test.folder.path()).expect("a folder").count(), 1);
}

#[test]
fn a_file_that_cannot_be_written_is_written_later() {
    let mut test = Test::new();
    invited(&test);
    let id = test.reload().add[0].id;
    test.clients.pin(id, key(5));
    // Without a folder nobody can write into it, root neither.
    let (here, there) = (test.folder.path().to_owned(), test.folder.path().with_extension("away"));
    fs::rename(&here, &there).expect("moved");
    fs::create_dir(&here).expect("a folder");
    fs::create_dir(here.join("van.toml")).expect("in the way");
    assert_eq!(test.clients.save().len(), 1);
    assert!(test.clients.has_unsaved());
    fs::remove_dir_all(&here).expect("removed");
    fs::rename(&there, &here).expect("back again");
    assert!(test.clients.save().is_empty() && !test.clients.has_unsaved());
}

#[test]
fn what_somebody_has_written_since_stays() {
    let mut test = Test::new();
    invited(&test);
    let id = test.reload().add[0].id;
    test.clients.pin(id, key(5));
    test.client("van", 6, "");
    assert!(test.clients.save().is_empty());
    let changes = test.reload();
    assert_eq!((changes.remove, changes.add.len()), (HashSet::from([id]), 1));
    assert_eq!(test.clients.core()[0].known_by, KnownBy::Key(key(6)));
    // And what is gone stays gone.
    test.clients.pin(test.clients.by_name["van"].id, key(5));
    fs::remove_file(test.folder.path().join("van.toml")).expect("removed");
    assert!(test.clients.save().is_empty());
    assert_eq!(test.reload().lines, ["client van: removed"]);
}
