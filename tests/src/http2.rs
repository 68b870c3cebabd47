//! Just enough HTTP/2 to be rude with: frames by hand, as no honest client sends them (RFC 9113; headers by RFC 7541
//! without compression).

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// How every connection begins.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// A DATA frame.
pub const DATA: u8 = 0;
/// A HEADERS frame.
pub const HEADERS: u8 = 1;
/// A RST_STREAM frame.
pub const RST_STREAM: u8 = 3;
/// A SETTINGS frame.
pub const SETTINGS: u8 = 4;
/// A PING frame.
pub const PING: u8 = 6;
/// The flag of the last DATA or HEADERS frame of a stream.
pub const END_STREAM: u8 = 1;
/// The flag of a HEADERS frame that is whole.
pub const END_HEADERS: u8 = 4;
/// The error code of a stream that its own side gives up.
pub const CANCEL: [u8; 4] = [0, 0, 0, 8];

/// A frame.
pub fn frame(kind: u8, flags: u8, stream: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = frame_head(kind, flags, stream, body.len());
    bytes.extend_from_slice(body);
    bytes
}

/// The head of a frame whose body comes later, or never.
pub fn frame_head(kind: u8, flags: u8, stream: u32, body_len: usize) -> Vec<u8> {
    let len = u32::try_from(body_len).expect("a frame is short");
    let mut bytes = len.to_be_bytes()[1..].to_vec();
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes
}

/// A frame that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What it is, for example [`DATA`].
    pub kind: u8,
    /// Its flags.
    pub flags: u8,
    /// Its stream.
    pub stream: u32,
    /// What it holds.
    pub body: &'a [u8],
}

/// The whole frames at the beginning of these bytes.
pub fn frames(mut bytes: &[u8]) -> Vec<Frame<'_>> {
    let mut found = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<9>() {
        let [a, b, c, kind, flags, stream @ ..] = *head;
        let len = u32::from_be_bytes([0, a, b, c]) as usize;
        let Some((body, rest)) = rest.split_at_checked(len) else {
            break;
        };
        found.push(Frame {
            kind,
            flags,
            stream: u32::from_be_bytes(stream),
            body,
        });
        bytes = rest;
    }
    found
}

/// The headers of a gRPC call, each as a literal without indexing.
pub fn call_headers(path: &str, token: Option<&str>) -> Vec<u8> {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let mut pairs = vec![
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "coordinator"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    pairs.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
    let mut block = Vec::new();
    for (name, value) in pairs {
        block.push(0);
        for text in [name, value] {
            length(text.len(), &mut block);
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// An integer with a prefix of seven bits.
fn length(mut value: usize, block: &mut Vec<u8>) {
    const PREFIX: usize = 127;
    if value < PREFIX {
        return block.push(value as u8);
    }
    block.push(PREFIX as u8);
    value -= PREFIX;
    while value >= 128 {
        block.push((value % 128) as u8 | 128);
        value /= 128;
    }
    block.push(value as u8);
}

/// A connection that has said hello; `None` when it was not let in.
pub async fn open(addr: std::net::SocketAddr) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(addr).await.ok()?;
    stream.set_nodelay(true).ok()?;
    let hello = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
    stream.write_all(&hello).await.ok()?;
    Some(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_written_as_the_standard_says() {
        let written = |value| {
            let mut block = Vec::new();
            length(value, &mut block);
            block
        };
        assert_eq!(written(10), [10]);
        assert_eq!(written(127), [127, 0]);
        // RFC 7541, C.1.2 with a prefix of seven bits: 1337 = 127 + 58 + 9 * 128 + ...
        assert_eq!(written(1_337), [127, 0xba, 9]);
    }

    #[test]
    fn a_frame_has_its_length_first() {
        assert_eq!(frame(DATA, 1, 3, b"ab"), [0, 0, 2, 0, 1, 0, 0, 0, 3, b'a', b'b']);
    }

    #[test]
    fn frames_are_read_as_they_were_written_and_half_a_one_is_left() {
        let sent = [frame(DATA, END_STREAM, 3, b"ab"), frame(SETTINGS, 0, 0, &[])].concat();
        let first = Frame {
            kind: DATA,
            flags: END_STREAM,
            stream: 3,
            body: b"ab",
        };
        assert_eq!(frames(&sent).len(), 2);
        assert_eq!(frames(&sent)[0], first);
        assert_eq!(frames(&sent[..12]), [first]);
        assert!(frames(&sent[..10]).is_empty());
    }
}
