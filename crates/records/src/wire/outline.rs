//! The top level of an encoded record, read without allocating.
//!
//! Knows protobuf's framing and three field numbers of `GameRecord`; knows nothing of what is inside a ply.

use prost::decode_length_delimiter as decode_varint;

/// What the top level tells.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outline<'a> {
    /// Bytes of the last `lease_id` field.
    pub lease: Option<&'a [u8]>,
    /// The last `game_index`; 0 when absent, as in every proto3 message.
    pub game_index: u32,
    /// Number of `plies` fields.
    pub plies: usize,
}

const LEASE_ID: usize = 2;
const GAME_INDEX: usize = 3;
const PLIES: usize = 13;

impl Outline<'_> {
    /// The outline of `bytes`, or `None` when they are not a sequence of whole fields.
    pub(super) fn read(mut bytes: &[u8]) -> Option<Outline<'_>> {
        let mut outline = Outline::default();
        while !bytes.is_empty() {
            let key = decode_varint(&mut bytes).ok()?;
            let (field, wire_type) = (key >> 3, key & 7);
            match wire_type {
                0 => {
                    let value = decode_varint(&mut bytes).ok()?;
                    if field == GAME_INDEX {
                        // Protobuf reads an over-long 32-bit field by its low half.
                        outline.game_index = value as u32;
                    }
                }
                1 => bytes = bytes.get(8..)?,
                2 => {
                    let len = decode_varint(&mut bytes).ok()?;
                    let (value, rest) = bytes.split_at_checked(len)?;
                    bytes = rest;
                    match field {
                        LEASE_ID => outline.lease = Some(value),
                        PLIES => outline.plies += 1,
                        _ => {}
                    }
                }
                5 => bytes = bytes.get(4..)?,
                // Groups (3, 4) are not proto3; nothing else exists.
                _ => return None,
            }
        }
        Some(outline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_every_wire_type_are_stepped_over() {
        let bytes = [
            0x08, 0x01, // schema_version, a varint
            0x12, 0x02, 0xaa, 0xbb, // lease_id, two bytes
            0x18, 0xac, 0x02, // game_index 300
            0x59, 1, 2, 3, 4, 5, 6, 7, 8, // seed, eight bytes
            0x6a, 0x00, 0x6a, 0x02, 0x10, 0x05, // two plies
            0xfd, 0x01, 1, 2, 3, 4, // field 31, four bytes
        ];
        let expected = Outline {
            lease: Some(&[0xaa, 0xbb]),
            game_index: 300,
            plies: 2,
        };
        assert_eq!(Outline::read(&bytes), Some(expected));
    }

    #[test]
    fn cut_fields_and_groups_are_no_record() {
        for bytes in [
            &[0x12, 0x02, 0xaa][..],
            &[0x59, 1, 2],
            &[0x08],
            &[0x6b],
            &[0xff; 11],
            &[0x6d, 1],
        ] {
            assert_eq!(Outline::read(bytes), None, "{bytes:?}");
        }
    }
}
