//! The syntax of SGF: game trees of nodes of properties, read as far as the main line goes.
//!
//! Written here because a reader's errors must say where they are, and bytes in any encoding must be read; the tests hold
//! it against the crate `sgf-parse`.

use super::super::SyntaxError;

/// One game: its main line, which takes the first of every choice of continuations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Game {
    /// Nodes in order, the root first.
    pub nodes: Vec<Node>,
    /// Where it begins, bytes.
    pub offset: usize,
    /// Continuations that were left aside.
    pub variations: usize,
}

/// One node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Its properties in order.
    pub properties: Vec<Property>,
}

/// One property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    /// The name, capitals only.
    pub name: String,
    /// The values, at least one, without escapes.
    pub values: Vec<String>,
    /// Where it stands, bytes.
    pub offset: usize,
}

impl Node {
    /// The first value of a property.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.values(name).first().map(String::as_str)
    }

    /// All values of a property.
    pub fn values(&self, name: &str) -> &[String] {
        let property = self.properties.iter().find(|property| property.name == name);
        property.map_or(&[], |property| &property.values)
    }
}

/// Reads the games of a collection. What stands before the first game is passed over, as the format asks.
///
/// # Errors
/// The first byte that is not what the format has there.
pub fn parse(bytes: &[u8]) -> Result<Vec<Game>, SyntaxError> {
    let mut reader = Reader { bytes, at: 0 };
    let mut games = Vec::new();
    reader.at = begin(bytes).ok_or_else(|| reader.error("there is no game: expected `(;`"))?;
    while reader.skip_space() {
        games.push(reader.game()?);
    }
    Ok(games)
}

/// Where the first game begins.
fn begin(bytes: &[u8]) -> Option<usize> {
    (0..bytes.len()).find(|&at| {
        let follows = bytes[at + 1..].iter().find(|byte| !byte.is_ascii_whitespace());
        bytes[at] == b'(' && follows == Some(&b';')
    })
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A game tree that is open.
struct Open {
    /// Whether its nodes belong to the main line.
    main: bool,
    /// Whether a continuation was in it already.
    continued: bool,
}

impl Reader<'_> {
    fn error(&self, what: &str) -> SyntaxError {
        SyntaxError::at(self.bytes, self.at, what)
    }

    /// Steps over white space; whether anything follows.
    fn skip_space(&mut self) -> bool {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
        self.at < self.bytes.len()
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// One game tree, however deep its variations are: what is open stands in a list, not on the stack.
    fn game(&mut self) -> Result<Game, SyntaxError> {
        let mut game = Game {
            nodes: Vec::new(),
            offset: self.at,
            variations: 0,
        };
        let mut open: Vec<Open> = Vec::new();
        loop {
            if !self.skip_space() {
                return Err(self.error("the file ends inside a game"));
            }
            match (self.peek(), open.last_mut()) {
                (Some(b'('), None) => open.push(Open {
                    main: true,
                    continued: false,
                }),
                (Some(b'('), Some(above)) => {
                    let main = above.main && !above.continued;
                    game.variations += usize::from(above.main && above.continued);
                    above.continued = true;
                    open.push(Open { main, continued: false });
                }
                (Some(b')'), Some(_)) => {
                    open.pop();
                    self.at += 1;
                    if open.is_empty() {
                        return if game.nodes.is_empty() {
                            Err(self.error("a game without a node"))
                        } else {
                            Ok(game)
                        };
                    }
                    continue;
                }
                (Some(b';'), Some(tree)) => {
                    let main = tree.main;
                    self.at += 1;
                    let node = self.node()?;
                    if main {
                        game.nodes.push(node);
                    }
                    continue;
                }
                _ => return Err(self.error("expected `;`, `(` or `)`")),
            }
            self.at += 1;
        }
    }

    fn node(&mut self) -> Result<Node, SyntaxError> {
        let mut node = Node::default();
        while self.skip_space() && self.peek().is_some_and(|byte| byte.is_ascii_alphabetic()) {
            node.properties.push(self.property()?);
        }
        Ok(node)
    }

    fn property(&mut self) -> Result<Property, SyntaxError> {
        let offset = self.at;
        let letters = self.bytes[offset..]
            .iter()
            .take_while(|byte| byte.is_ascii_alphabetic())
            .count();
        self.at += letters;
        // Before FF[4] names had small letters between, which mean nothing.
        let capitals = self.bytes[offset..self.at]
            .iter()
            .filter(|byte| byte.is_ascii_uppercase());
        let name: String = capitals.map(|&byte| char::from(byte)).collect();
        if name.is_empty() {
            self.at = offset;
            return Err(self.error("a property's name has no capital letter"));
        }
        let mut values = Vec::new();
        while self.skip_space() && self.peek() == Some(b'[') {
            values.push(self.value()?);
        }
        if values.is_empty() {
            return Err(self.error("expected `[` behind a property's name"));
        }
        Ok(Property { name, values, offset })
    }

    fn value(&mut self) -> Result<String, SyntaxError> {
        let begin = self.at;
        self.at += 1;
        let mut value = Vec::new();
        loop {
            match (self.peek(), self.bytes.get(self.at + 1)) {
                (Some(b']'), _) => {
                    self.at += 1;
                    return Ok(String::from_utf8_lossy(&value).into_owned());
                }
                // A line that is broken behind a backslash goes on.
                (Some(b'\\'), Some(b'\n' | b'\r')) => self.at += 2,
                (Some(b'\\'), Some(&escaped)) => {
                    value.push(escaped);
                    self.at += 2;
                }
                (Some(byte), _) => {
                    value.push(byte);
                    self.at += 1;
                }
                (None, _) => {
                    self.at = begin;
                    return Err(self.error("a value without `]`"));
                }
            }
        }
    }
}

/// `text` with what would end a value escaped.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, ']' | '\\') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        let games = parse(text.as_bytes()).unwrap();
        let nodes = games.iter().flat_map(|game| &game.nodes);
        let properties = nodes.flat_map(|node| &node.properties);
        properties
            .map(|property| format!("{}={}", property.name, property.values.join(",")))
            .collect()
    }

    #[test]
    fn the_main_line_is_the_first_of_every_choice() {
        let text = "text before\n( ;FF[4] (;B[aa] (;W[bb]) (;W[cc];B[dd])) (;B[ee])) (;B[ff])";
        assert_eq!(values(text), ["FF=4", "B=aa", "W=bb", "B=ff"]);
        let games = parse(text.as_bytes()).unwrap();
        assert_eq!((games.len(), games[0].variations, games[0].offset), (2, 2, 12));
    }

    #[test]
    fn escapes_and_old_names_are_read() {
        assert_eq!(values(r"(;C[a\]b\\c\:d];AddBlack[aa][bb])"), [r"C=a]b\c:d", "AB=aa,bb"]);
        assert_eq!(values("(;C[one \\\ntwo])"), ["C=one two"]);
        assert_eq!(values(&format!("(;C[{}])", escaped(r"]\["))), [r"C=]\["]);
    }

    #[test]
    fn faults_say_where_they_are() {
        let refused = |text: &str| parse(text.as_bytes()).unwrap_err().to_string();
        assert!(refused("").starts_with("line 1, column 1: there is no game"));
        assert!(refused("(;B[aa]\n;W[bb").starts_with("line 2, column 3: a value without"));
        assert!(refused("(;B[aa]").contains("ends inside a game"));
        assert!(refused("(;B)").starts_with("line 1, column 4: expected `[`"));
        assert!(refused("(;B[aa]) x").starts_with("line 1, column 10"));
        assert!(refused("(;B[aa];;W[bb]7)").contains("expected `;`"));
    }

    #[test]
    fn depth_does_not_matter() {
        let deep = format!("{}{}", "(;B[aa]".repeat(100_000), ")".repeat(100_000));
        assert_eq!(parse(deep.as_bytes()).unwrap()[0].nodes.len(), 100_000);
    }
}
