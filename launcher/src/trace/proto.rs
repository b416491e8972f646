//! Writes messages in the encoding of Protocol Buffers: fields, each a number and a value. Called by `perfetto.rs`.

/// A message under construction.
#[derive(Debug, Default)]
pub(super) struct Message(Vec<u8>);

/// How a value is encoded.
enum Wire {
    Varint = 0,
    Fixed64 = 1,
    Bytes = 2,
}

impl Message {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Makes it empty, and keeps its memory.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Appends a number.
    pub(super) fn number(&mut self, field: u32, value: u64) -> &mut Self {
        self.key(field, Wire::Varint);
        varint(&mut self.0, value);
        self
    }

    /// Appends a number that takes 8 bytes.
    pub(super) fn fixed(&mut self, field: u32, value: u64) -> &mut Self {
        self.key(field, Wire::Fixed64);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Appends bytes or a text.
    pub(super) fn text(&mut self, field: u32, bytes: impl AsRef<[u8]>) -> &mut Self {
        let bytes = bytes.as_ref();
        self.key(field, Wire::Bytes);
        varint(&mut self.0, bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// Appends a message.
    pub(super) fn message(&mut self, field: u32, build: impl FnOnce(&mut Self)) -> &mut Self {
        self.key(field, Wire::Bytes);
        let start = self.0.len();
        build(self);
        let len = self.0.len() - start;
        varint(&mut self.0, len as u64);
        // The length belongs before the content.
        let added = self.0.len() - start - len;
        self.0[start..].rotate_right(added);
        self
    }

    fn key(&mut self, field: u32, wire: Wire) {
        varint(&mut self.0, u64::from(field) << 3 | wire as u64);
    }
}

/// Appends a number by groups of seven bits, the lowest first.
fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value > 0x7F {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A field of a message that was decoded.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub(in crate::trace) enum Value {
        Number(u64),
        Fixed(u64),
        Bytes(Vec<u8>),
    }

    /// Decodes a message into its fields, in order.
    pub(in crate::trace) fn fields(mut bytes: &[u8]) -> Vec<(u32, Value)> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = take_varint(&mut bytes);
            let value = match key & 7 {
                0 => Value::Number(take_varint(&mut bytes)),
                1 => {
                    let (value, rest) = bytes.split_first_chunk::<8>().expect("8 bytes");
                    bytes = rest;
                    Value::Fixed(u64::from_le_bytes(*value))
                }
                2 => {
                    let len = take_varint(&mut bytes) as usize;
                    let (value, rest) = bytes.split_at(len);
                    bytes = rest;
                    Value::Bytes(value.to_vec())
                }
                other => panic!("no such kind of field: {other}"),
            };
            fields.push(((key >> 3) as u32, value));
        }
        fields
    }

    fn take_varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let (byte, rest) = bytes.split_first().expect("a number ends");
            *bytes = rest;
            value |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        value
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            numbers in prop::collection::vec((1_u32..1 << 20, any::<u64>()), 0..8),
            texts in prop::collection::vec("\\PC{0,300}", 0..4),
        ) {
            let mut message = Message::default();
            message.message(3, |inner| {
                for (field, number) in &numbers {
                    inner.number(*field, *number).fixed(*field, *number);
                }
                inner.message(4, |inner| {
                    texts.iter().for_each(|text| {
                        inner.text(2, text);
                    });
                });
            });
            message.number(5, u64::MAX);
            let outer = fields(message.bytes());
            let [(3, Value::Bytes(inner)), (5, Value::Number(u64::MAX))] = &outer[..] else {
                panic!("{outer:?}")
            };
            let mut expected: Vec<_> = numbers
                .iter()
                .flat_map(|(field, number)| {
                    [(*field, Value::Number(*number)), (*field, Value::Fixed(*number))]
                })
                .collect();
            let mut deepest = Message::default();
            texts.iter().for_each(|text| {
                deepest.text(2, text);
            });
            expected.push((4, Value::Bytes(deepest.bytes().to_vec())));
            prop_assert_eq!(fields(inner), expected);
        }
    }
}
