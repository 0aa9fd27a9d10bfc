//! Events as columns of differences: what an event chunk's payload holds.
//!
//! Neighbouring events resemble each other, so each field is stored as its difference to the one before (zigzag, 7 bits a
//! byte), field after field, and a compressor then finds the repetitions. Words are compared with those of the previous
//! event of the same kind. A chunk starts from zero, so each is decodable alone.
//!
//! Layout: an [`Anchor`] (three u64), the number of events (u32), then for each column its length in bytes (u32) and its
//! bytes, in the order of [`COLUMNS`].

use crate::codec;
use crate::define::Anchor;
use crate::error::WireError;
use crate::event::{Event, Flags};
use crate::ids::{ApiId, DeviceOrdinal, Seq, StackId, ThreadId};
use crate::limits;

/// seq, time, thread, stack, kind, api, device, flags, four words.
const COLUMNS: usize = 12;
/// Kinds whose previous words are remembered; higher numbers share the last place.
const KINDS: usize = 128;

fn zigzag(value: u64) -> u64 {
    let signed = value as i64;
    ((signed << 1) ^ (signed >> 63)) as u64
}

fn unzigzag(value: u64) -> u64 {
    ((value >> 1) as i64 ^ -((value & 1) as i64)) as u64
}

fn put(out: &mut Vec<u8>, difference: u64) {
    let mut rest = zigzag(difference);
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn take(bytes: &mut &[u8]) -> Result<u64, WireError> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes
            .split_first()
            .ok_or_else(|| WireError::Malformed("an event column is too short".into()))?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(unzigzag(value));
        }
    }
    Err(WireError::Malformed(
        "a number in an event column is too long".into(),
    ))
}

/// The previous event's values: all columns but the words once, the words by kind.
struct Previous {
    fields: [u64; 8],
    words: Vec<[u64; 4]>,
}

impl Previous {
    fn new() -> Self {
        Self {
            fields: [0; 8],
            words: vec![[0; 4]; KINDS],
        }
    }

    fn words(&mut self, kind: u64) -> &mut [u64; 4] {
        let place = usize::try_from(kind).unwrap_or(KINDS).min(KINDS - 1);
        &mut self.words[place]
    }
}

fn fields(event: &Event) -> [u64; 8] {
    [
        event.seq.0,
        event.time,
        event.thread.0.into(),
        event.stack.0.into(),
        event.kind.into(),
        event.api.0.into(),
        event.device.0 as u64,
        event.flags.0.into(),
    ]
}

/// Encodes at most [`limits::CHUNK_EVENTS`] events; further ones are left out, so the caller splits first.
pub fn encode(anchor: Anchor, events: &[Event]) -> Vec<u8> {
    let events = &events[..events.len().min(limits::CHUNK_EVENTS)];
    let mut columns: [Vec<u8>; COLUMNS] = Default::default();
    let mut previous = Previous::new();
    for event in events {
        let now = fields(event);
        let (heads, words) = columns.split_at_mut(8);
        for ((column, now), before) in heads.iter_mut().zip(now).zip(previous.fields) {
            put(column, now.wrapping_sub(before));
        }
        let before = previous.words(event.kind.into());
        for ((column, now), before) in words.iter_mut().zip(event.words).zip(*before) {
            put(column, now.wrapping_sub(before));
        }
        *before = event.words;
        previous.fields = now;
    }
    let mut out =
        Vec::with_capacity(28 + columns.iter().map(|column| column.len() + 4).sum::<usize>());
    for value in [anchor.ticks, anchor.monotonic_ns, anchor.realtime_ns] {
        out.extend_from_slice(&value.to_le_bytes());
    }
    out.extend_from_slice(&(events.len() as u32).to_le_bytes());
    for column in &columns {
        out.extend_from_slice(&(column.len() as u32).to_le_bytes());
        out.extend_from_slice(column);
    }
    out
}

/// Decodes a chunk's payload.
///
/// # Errors
/// [`WireError::Malformed`], [`WireError::Truncated`] or [`WireError::TooLarge`] if the bytes are not what [`encode`] writes.
pub fn decode(payload: &[u8]) -> Result<(Anchor, Vec<Event>), WireError> {
    let ((anchor, count), used): ((Anchor, u32), usize) = codec::decode_front(payload)?;
    let count = count as usize;
    if count > limits::CHUNK_EVENTS {
        return Err(WireError::TooLarge {
            what: "the number of events in a chunk",
            got: count as u64,
            limit: limits::CHUNK_EVENTS as u64,
        });
    }
    let mut rest = payload.get(used..).unwrap_or(&[]);
    let mut columns: [&[u8]; COLUMNS] = [&[]; COLUMNS];
    for column in &mut columns {
        let (length, tail) = rest.split_at_checked(4).ok_or(WireError::Truncated {
            have: rest.len(),
            need: 4,
        })?;
        let length = u32::from_le_bytes(length.try_into().unwrap_or_default()) as usize;
        let (bytes, tail) = tail.split_at_checked(length).ok_or(WireError::Truncated {
            have: tail.len(),
            need: length,
        })?;
        (*column, rest) = (bytes, tail);
    }
    let mut events = Vec::with_capacity(count.min(payload.len()));
    let mut previous = Previous::new();
    for _ in 0..count {
        let (heads, words) = columns.split_at_mut(8);
        for (column, field) in heads.iter_mut().zip(&mut previous.fields) {
            *field = field.wrapping_add(take(column)?);
        }
        let [seq, time, thread, stack, kind, api, device, flags] = previous.fields;
        let values = previous.words(kind);
        for (column, word) in words.iter_mut().zip(values.iter_mut()) {
            *word = word.wrapping_add(take(column)?);
        }
        events.push(Event {
            seq: Seq(seq),
            time,
            thread: ThreadId(thread as u32),
            stack: StackId(stack as u32),
            kind: kind as u16,
            api: ApiId(api as u16),
            device: DeviceOrdinal(device as i16),
            flags: Flags(flags as u16),
            words: *values,
        });
    }
    Ok((anchor, events))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Kind;

    fn sample(n: u64) -> Event {
        Event {
            seq: Seq(n),
            time: 1_000_000 + n * 350,
            thread: ThreadId((n % 3) as u32),
            stack: StackId((n % 17) as u32 + 2),
            kind: if n.is_multiple_of(2) {
                Kind::BlockAlloc as u16
            } else {
                Kind::BlockFree as u16
            },
            api: ApiId(4),
            device: DeviceOrdinal(if n.is_multiple_of(5) { -1 } else { 0 }),
            flags: Flags((n % 4) as u16),
            words: [0x7f00_0000_0000 + n * 512, n * 512, u64::MAX - n, 0],
        }
    }

    #[test]
    fn what_goes_in_comes_out() {
        let anchor = Anchor {
            ticks: 1,
            monotonic_ns: 2,
            realtime_ns: u64::MAX,
        };
        let events: Vec<Event> = (0..1000).map(sample).collect();
        let payload = encode(anchor, &events);
        assert_eq!(decode(&payload), Ok((anchor, events)));
        assert_eq!(decode(&encode(anchor, &[])), Ok((anchor, Vec::new())));
    }

    #[test]
    fn extremes_survive() {
        let event = Event {
            seq: Seq(u64::MAX),
            time: u64::MAX,
            thread: ThreadId(u32::MAX),
            stack: StackId(u32::MAX),
            kind: u16::MAX,
            api: ApiId(u16::MAX),
            device: DeviceOrdinal(i16::MIN),
            flags: Flags(u16::MAX),
            words: [u64::MAX, 0, 1 << 63, 1],
        };
        let events = vec![event, Event::default(), event];
        assert_eq!(
            decode(&encode(Anchor::default(), &events)).unwrap().1,
            events
        );
    }

    #[test]
    fn a_payload_cut_anywhere_is_an_error() {
        let events: Vec<Event> = (0..20).map(sample).collect();
        let payload = encode(Anchor::default(), &events);
        for length in 0..payload.len() {
            assert!(decode(&payload[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn a_claimed_count_beyond_the_limit_is_an_error() {
        let mut payload = encode(Anchor::default(), &[]);
        payload[24..28].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(matches!(decode(&payload), Err(WireError::TooLarge { .. })));
    }
}
