use super::*;

/// A block of a given number of ranges and words.
fn block(path: u8, ranges: usize, words: usize) -> Block {
    let mut block = Block { path, ..Block::default() };
    assert!((0..ranges).all(|_| block.ranges.push(Range { missing: 1, received: 2 })));
    assert!((0..words).all(|_| block.bitmap.push(u64::MAX)));
    block
}

/// The paths in a message.
fn paths(message: &[u8]) -> Vec<u8> {
    Feedback::parse(message).unwrap().blocks().map(|block| block.path).collect()
}

#[test]
fn what_does_not_fit_is_left_for_a_further_feedback() {
    for (ranges, words, fit) in [(0, 0, 16), (32, 16, 3), (32, 0, 5), (0, 16, 5), (1, 0, 15)] {
        let mut place = [0xee; 1500];
        let mut writer = Writer::new(&mut place, 1, None, 2);
        let pushed =
            (0..MAX_BLOCKS).take_while(|&path| writer.push(&block(path, ranges, words))).count();
        assert_eq!(pushed, fit, "{ranges} ranges and {words} words");
        let len = writer.finish();
        assert_eq!(len, 8 + fit * block(0, ranges, words).size());
        assert!(CONTROL_LEN + len <= 1200);
        assert_eq!(paths(&place[..len]), (0..fit as u8).collect::<Vec<_>>());
        assert!(place[MAX_LEN..].iter().all(|&byte| byte == 0xee), "nothing is written behind it");
    }
}

#[test]
fn a_block_says_that_a_path_is_quiet_and_ignores_what_else_may_be_said_there() {
    for (byte, quiet) in [(0x00, false), (0x01, true), (0xfe, false), (0xff, true)] {
        let mut place = [0xee; 100];
        let mut writer = Writer::new(&mut place, 1, None, 2);
        assert!(writer.push(&Block { quiet, ..block(7, 1, 0) }));
        let len = writer.finish();
        assert_eq!(place[8 + 3], u8::from(quiet));
        place[8 + 3] = byte;
        let read = Feedback::parse(&place[..len]).unwrap().blocks().next().unwrap();
        assert_eq!(read, Block { quiet, ..block(7, 1, 0) }, "{byte}");
    }
}

#[test]
fn a_small_block_fits_where_a_large_one_did_not() {
    let mut place = [0xee; 8 + Block::BARE_LEN + 4];
    let mut writer = Writer::new(&mut place, 1, None, 2);
    assert!(!writer.push(&block(1, 2, 0)) && writer.push(&block(2, 1, 0)));
    let len = writer.finish();
    assert_eq!((paths(&place[..len]), len), (vec![2], place.len()));
}

#[test]
fn a_block_that_lacks_one_byte_does_not_fit() {
    for (len, fits) in [(8 + 76, true), (8 + 75, false), (8, false)] {
        let mut place = vec![0xee; len];
        assert_eq!(Writer::new(&mut place, 1, None, 2).push(&block(1, 1, 0)), fits, "{len} bytes");
    }
}

#[test]
fn lists_have_room_for_as_many_as_a_block_may_have() {
    let mut full = block(0, MAX_RANGES, MAX_WORDS);
    assert_eq!((full.ranges.len(), full.bitmap.len()), (32, 16));
    assert!(!full.ranges.push(Range::default()) && !full.bitmap.push(0));
    assert_eq!(full, block(0, MAX_RANGES, MAX_WORDS));
}

#[test]
fn a_feedback_without_blocks_is_dropped() {
    let mut place = [0xee; 8];
    let len = Writer::new(&mut place, 1, None, 2).finish();
    assert_eq!(Feedback::parse(&place[..len]).err(), Some(Drop::ControlLength));
}

/// What a block says of these path sequences.
fn told(block: &Block, sequences: std::ops::RangeInclusive<u32>) -> Vec<Option<bool>> {
    sequences.map(|sequence| block.was_received(sequence)).collect()
}

#[test]
fn ranges_tell_what_was_received_down_to_what_lies_below_the_resolved_one() {
    let mut block = Block { highest: 20, resolved: 19, below: 6, ..Block::default() };
    let ranges = [(0, 2), (3, 1), (1, 0)];
    let pushed = ranges.map(|(missing, received)| block.ranges.push(Range { missing, received }));
    assert_eq!(pushed, [true; 3]);
    let (no, yes) = (Some(false), Some(true));
    let expected = [None, no, no, yes, no, no, no, yes, yes, None];
    assert_eq!(told(&block, 12..=21), expected);
    let nothing = Block { highest: 20, resolved: 21, ..Block::default() };
    assert_eq!(told(&nothing, 19..=21), [None; 3]);
}

#[test]
fn a_bitmap_tells_what_was_received_as_far_as_it_reaches() {
    let mut block =
        Block { highest: 70, resolved: 2, below: 4, highest_sent: 1, ..Block::default() };
    assert!(block.bitmap.push(1 << 63 | 0b1011));
    let first = u32::MAX - 1;
    let before = [first.wrapping_sub(1), first, 0, 1, 2].map(|number| block.was_received(number));
    assert_eq!(before, [None, Some(true), Some(false), Some(true), Some(false)]);
    assert_eq!(told(&block, 60..=62), [Some(false), Some(true), None]);
    assert_eq!(block.bitmap_end(), 62);
    block.highest = 50;
    assert_eq!(block.bitmap_end(), 51, "nothing came after the highest");
    block.highest = 70;
    // Above that, ranges do.
    assert!(block.ranges.push(Range { missing: 0, received: 2 }));
    assert!(block.ranges.push(Range { missing: 3, received: 1 }));
    let expected = [None, Some(true), Some(false), Some(false), Some(false), Some(true)];
    assert_eq!(told(&block, 64..=69), expected);
}

#[test]
fn the_path_of_the_feedback_before_is_read_as_written() {
    for before in [None, Some(0), Some(7), Some(254)] {
        let mut place = [0xee; 200];
        let mut writer = Writer::new(&mut place, 1, before, 2);
        assert!(writer.push(&block(1, 1, 0)));
        let len = writer.finish();
        assert_eq!(Feedback::parse(&place[..len]).unwrap().before, before);
    }
}

#[test]
fn how_many_datagrams_delays_are_of_follows_from_the_bytes_that_arrived_with_them() {
    let block = |bytes_after_first| Block { bytes_after_first, ..Block::default() };
    assert_eq!(block(0).of_delays(48, 48 * 1400), 1);
    assert_eq!(block(9 * 1400).of_delays(48, 48 * 1400), 10);
    assert_eq!(block(u32::MAX).of_delays(48, 48 * 1400), 48);
    assert_eq!(block(1400).of_delays(0, 0), 0, "none has arrived");
}
