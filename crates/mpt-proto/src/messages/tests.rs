use super::*;

const CONNECTION: ConnectionId = ConnectionId(0);

fn hearing(path: u8, hearing: bool) -> PathUpdate {
    PathUpdate::Hearing { path: PathId(path), hearing }
}

fn state(path: u8, state: PathState) -> PathUpdate {
    PathUpdate::State { path: PathId(path), state }
}

fn all(messages: &mut Messages) -> Vec<(ConnectionId, Message)> {
    std::iter::from_fn(|| messages.poll_message()).collect()
}

#[test]
fn of_updates_that_wait_the_last_of_each_kind_and_path_remains() {
    let mut messages = Messages::default();
    for round in 0..1000 {
        for path in 0..3 {
            messages.update(CONNECTION, hearing(path, round % 2 == 0));
            messages.update(CONNECTION, state(path, PathState::Up));
        }
    }
    messages.update(CONNECTION, state(1, PathState::Probing));
    messages.update(ConnectionId(1), state(1, PathState::Off));
    let waiting = all(&mut messages);
    let update = |update| (CONNECTION, Message::Update(update));
    assert_eq!(waiting.len(), 7, "two per path, and one of another connection");
    assert_eq!(
        waiting[..2],
        [update(hearing(0, false)), update(state(0, PathState::Up))],
        "in the order in which the first of each came"
    );
    assert_eq!(waiting[3], update(state(1, PathState::Probing)));
    assert_eq!(waiting[6], (ConnectionId(1), Message::Update(state(1, PathState::Off))));
    assert_eq!(messages.poll_message(), None);
}

/// A host that has not read for a while gets the answers to a long challenge and to a short one together.
#[test]
fn of_answers_to_challenges_the_longest_remains() {
    let mut messages = Messages::default();
    let carried = |path, number, len| PathUpdate::Carried { path: PathId(path), number, len };
    for (path, number, len) in [(0, 1, 1472), (0, 2, 1304), (1, 3, 1304), (1, 4, 1472)] {
        messages.update(CONNECTION, carried(path, number, len));
    }
    let expected = [carried(0, 1, 1472), carried(1, 4, 1472)];
    assert_eq!(all(&mut messages), expected.map(|update| (CONNECTION, Message::Update(update))));
}

#[test]
fn feedback_of_a_path_is_merged_and_goes_first() {
    let mut messages = Messages::default();
    let keepalive = |count| Some(KeepaliveFeedback { count, heard: None });
    let feedback = |longest, keepalive| Feedback { path: PathId(9), longest, keepalive };
    messages.reply(CONNECTION, Reply::Keepalive { path: PathId(63) });
    messages.update(CONNECTION, hearing(9, true));
    messages.feedback(CONNECTION, feedback(5, keepalive(1)));
    messages.feedback(CONNECTION, feedback(1472, None));
    messages.feedback(CONNECTION, feedback(44, keepalive(2)));
    messages.reply(CONNECTION, Reply::Keepalive { path: PathId(9) });
    messages.reply(CONNECTION, Reply::Keepalive { path: PathId(63) });
    let reply = |path| Message::Reply(Reply::Keepalive { path: PathId(path) });
    let expected = [
        Message::Feedback(feedback(1472, keepalive(2))),
        Message::Update(hearing(9, true)),
        reply(9),
        reply(63),
    ];
    assert_eq!(all(&mut messages), expected.map(|message| (CONNECTION, message)));
}

#[test]
fn messages_about_a_connection_that_is_gone_are_forgotten() {
    let mut messages = Messages::default();
    [3, 1, 2].into_iter().for_each(|id| messages.update(ConnectionId(id), hearing(0, true)));
    messages.reply(ConnectionId(1), Reply::Keepalive { path: PathId(0) });
    messages.forget(ConnectionId(1));
    messages.forget(ConnectionId(9));
    messages.update(ConnectionId(3), state(0, PathState::Up));
    let order: Vec<_> = all(&mut messages).into_iter().map(|(id, _)| id.0).collect();
    assert_eq!(order, [3, 3, 2]);
    messages.update(ConnectionId(1), hearing(0, true));
    assert_eq!(all(&mut messages).len(), 1);
}
