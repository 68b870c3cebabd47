//! Tokens: `tengen_ID_SECRET`. The id names a token in lists and logs; of the secret only a hash is kept.

use std::fmt;

use rand::TryRng;
use rand::rngs::SysRng;
use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;

/// What every token begins with, so that people and secret scanners know one when they see it.
const PREFIX: &str = "tengen_";
/// Digits of an id: enough that no two tokens of a run share one.
const ID_LEN: usize = 12;
/// Digits of a secret: 256 bits, so a fast hash is as good as a slow one.
const SECRET_LEN: usize = 64;
/// Domain of the hash.
const HASH_CONTEXT: &str = "tengen bearer token 1";

/// The public part of a token.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TokenId(String);

/// The text is no token's id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not {ID_LEN} hexadecimal digits, as `tengen token list` shows them")]
pub struct NoTokenId;

impl TokenId {
    /// Reads an id, or takes it out of a whole token.
    pub fn parse(text: &str) -> Result<TokenId, NoTokenId> {
        let id = text.strip_prefix(PREFIX).unwrap_or(text);
        let id = id.split('_').next().unwrap_or_default();
        let digits = id.len() == ID_LEN && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        digits.then(|| TokenId(id.to_owned())).ok_or(NoTokenId)
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The hash of a token's secret; compared in constant time.
#[derive(Clone, Copy)]
pub struct TokenHash(pub [u8; 32]);

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(..)")
    }
}

impl PartialEq for TokenHash {
    fn eq(&self, other: &TokenHash) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for TokenHash {}

impl TokenHash {
    fn of(secret: &str) -> TokenHash {
        let mut hasher = blake3::Hasher::new_derive_key(HASH_CONTEXT);
        TokenHash(*hasher.update(secret.as_bytes()).finalize().as_bytes())
    }
}

/// A token as it is shown once, to whoever made it.
#[derive(Debug)]
pub struct NewToken {
    /// Its id.
    pub id: TokenId,
    /// The hash of its secret.
    pub hash: TokenHash,
    /// The whole token.
    pub text: SecretString,
}

/// The system gives no random bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gives no random bits")]
pub struct NoRandomness;

impl NewToken {
    /// Draws a token from the operating system's randomness.
    pub fn draw() -> Result<NewToken, NoRandomness> {
        let mut bytes = [0; (ID_LEN + SECRET_LEN) / 2];
        SysRng.try_fill_bytes(&mut bytes).map_err(|_| NoRandomness)?;
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let (id, secret) = digits.split_at(ID_LEN);
        Ok(NewToken {
            id: TokenId(id.to_owned()),
            hash: TokenHash::of(secret),
            text: SecretString::from(format!("{PREFIX}{id}_{secret}")),
        })
    }
}

/// The token that a request shows.
pub(crate) struct Shown {
    pub(crate) id: TokenId,
    pub(crate) hash: TokenHash,
}

/// Reads the value of an `authorization` header; `None` when it is no token of ours.
pub(crate) fn read(header: &str) -> Option<Shown> {
    let (scheme, token) = header.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let (id, secret) = token.strip_prefix(PREFIX)?.split_once('_')?;
    if secret.len() != SECRET_LEN {
        return None;
    }
    Some(Shown {
        id: TokenId::parse(id).ok()?,
        hash: TokenHash::of(secret),
    })
}

/// The header that shows this token; for tests of the layer.
#[cfg(test)]
pub(crate) fn header(token: &NewToken) -> String {
    format!("Bearer {}", token.text.expose_secret())
}

/// The text of a token, for the one place that hands it out.
pub(crate) fn reveal(token: &NewToken) -> String {
    token.text.expose_secret().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_drawn() {
        let token = NewToken::draw().unwrap();
        let shown = read(&header(&token)).unwrap();
        assert_eq!((&shown.id, shown.hash), (&token.id, token.hash));
        assert_eq!(TokenId::parse(&reveal(&token)).unwrap(), token.id);
        assert_ne!(NewToken::draw().unwrap().hash, token.hash);
    }

    #[test]
    fn what_is_no_token_is_not_read() {
        let token = NewToken::draw().unwrap();
        let good = header(&token);
        let bad = [
            "",
            "Bearer",
            "Bearer ",
            "Bearer tengen_",
            "Bearer tengen_0123456789ab_",
            "Basic YWJj",
        ];
        for header in bad.map(str::to_owned).into_iter().chain([
            good.replace("Bearer ", ""),
            good.replace("tengen_", "tengen"),
            format!("{good}0"),
            good.to_uppercase(),
        ]) {
            assert!(read(&header).is_none(), "{header}");
        }
    }

    #[test]
    fn nothing_that_prints_a_token_prints_its_secret() {
        let token = NewToken::draw().unwrap();
        let text = reveal(&token);
        let secret = text.rsplit('_').next().unwrap();
        let hash: String = token.hash.0.iter().map(|byte| format!("{byte:02x}")).collect();
        let printed = format!("{token:?} {:?}", token.hash);
        assert!(!printed.contains(secret) && !printed.contains(&hash), "{printed}");
    }
}
