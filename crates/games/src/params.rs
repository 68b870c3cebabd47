//! The text form of a game, `name?key=value&key=value`, and how a family reads its parameters from it.
//!
//! A family asks for its parameters one by one; [`Params::finish`] then refuses what nobody asked for and gives the
//! canonical id, in which parameters at their default are left out.

use std::ops::RangeInclusive;

/// Longest accepted game text, in bytes.
const TEXT_BYTES_MAX: usize = 256;

/// Parameters that change the feature planes and nothing else, in every family that takes them.
const PLANE_PARAMETERS: [&str; 2] = ["history", "threat_planes"];

/// Parameters as they stand in a game text: keys with values, in order.
pub type Given = Vec<(String, String)>;

/// A text that names no game.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseGameError {
    /// No family has this name.
    #[error("unknown game `{name}`; known: {known}")]
    UnknownGame {
        /// The name as given.
        name: String,
        /// Every registered name, separated by commas.
        known: String,
    },
    /// The text is not of the form `name?key=value&key=value`.
    #[error("malformed game `{text}`: expected `name?key=value&key=value`")]
    Malformed {
        /// The text as given, cut to a readable length.
        text: String,
    },
    /// The family has no such parameter.
    #[error("game `{game}` has no parameter `{key}`; known: {known}")]
    UnknownParameter {
        /// The family's name.
        game: &'static str,
        /// The parameter as given.
        key: String,
        /// The family's parameters, separated by commas.
        known: String,
    },
    /// A parameter is given twice, or a preset fixes it.
    #[error("parameter `{key}` of game `{game}` is given twice or fixed by the preset")]
    Repeated {
        /// The family's name.
        game: &'static str,
        /// The parameter.
        key: String,
    },
    /// A parameter has a value outside its range.
    #[error("game `{game}`: `{key}={value}` is not allowed: {expected}")]
    BadValue {
        /// The family's name.
        game: &'static str,
        /// The parameter.
        key: &'static str,
        /// The value as given.
        value: String,
        /// What would be allowed.
        expected: String,
    },
}

/// The parameters of one game text while a family reads them.
#[derive(Debug)]
pub struct Params {
    game: &'static str,
    given: Given,
    asked: Vec<&'static str>,
    canonical: Vec<String>,
}

/// Splits a game text into the family's name and its parameters in the order given.
pub fn split(text: &str) -> Result<(&str, Given), ParseGameError> {
    let malformed = || ParseGameError::Malformed {
        text: text.chars().take(TEXT_BYTES_MAX).collect(),
    };
    if text.len() > TEXT_BYTES_MAX {
        return Err(malformed());
    }
    let Some((name, rest)) = text.split_once('?') else {
        return Ok((text, Vec::new()));
    };
    let given = rest
        .split('&')
        .map(|pair| {
            let (key, value) = pair.split_once('=').ok_or_else(malformed)?;
            if key.is_empty() || value.is_empty() {
                return Err(malformed());
            }
            Ok((key.to_owned(), value.to_owned()))
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok((name, given))
}

/// The canonical id without the parameters that change only the planes: games with the same rules share it.
pub fn rules_id(id: &str) -> String {
    let Some((name, parameters)) = id.split_once('?') else {
        return id.to_owned();
    };
    let of_rules = |pair: &&str| {
        let key = pair.split('=').next().unwrap_or_default();
        !PLANE_PARAMETERS.contains(&key)
    };
    let kept: Vec<&str> = parameters.split('&').filter(of_rules).collect();
    if kept.is_empty() {
        return name.to_owned();
    }
    format!("{name}?{}", kept.join("&"))
}

impl Params {
    /// The parameters of family `game`, refusing one that is given twice.
    pub fn new(game: &'static str, given: Given) -> Result<Params, ParseGameError> {
        for (index, (key, _)) in given.iter().enumerate() {
            if given[..index].iter().any(|(earlier, _)| earlier == key) {
                return Err(ParseGameError::Repeated { game, key: key.clone() });
            }
        }
        Ok(Params {
            game,
            given,
            asked: Vec::new(),
            canonical: Vec::new(),
        })
    }

    /// The parameters of a preset: family `game` with some parameters fixed.
    pub fn preset(mut self, game: &'static str, fixed: &[(&str, &str)]) -> Result<Params, ParseGameError> {
        for (key, value) in fixed {
            if self.given.iter().any(|(given, _)| given == key) {
                return Err(ParseGameError::Repeated {
                    game: self.game,
                    key: (*key).to_owned(),
                });
            }
            self.given.push(((*key).to_owned(), (*value).to_owned()));
        }
        self.game = game;
        Ok(self)
    }

    /// Reads a number within `range`.
    pub fn number(
        &mut self,
        key: &'static str,
        default: usize,
        range: RangeInclusive<usize>,
    ) -> Result<usize, ParseGameError> {
        let Some(text) = self.take(key) else {
            return Ok(default);
        };
        let plain = text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse::<usize>() {
            Ok(number) if plain && range.contains(&number) => {
                if number != default {
                    self.canonical.push(format!("{key}={number}"));
                }
                Ok(number)
            }
            _ => Err(self.bad_value(
                key,
                text,
                format!("a whole number from {} to {}", range.start(), range.end()),
            )),
        }
    }

    /// Reads a number within `range` that may be left out.
    pub fn optional_number(
        &mut self,
        key: &'static str,
        range: RangeInclusive<usize>,
    ) -> Result<Option<usize>, ParseGameError> {
        // No parameter has a range that reaches this far, so it stands for none.
        let none = usize::MAX;
        let number = self.number(key, none, range)?;
        Ok((number != none).then_some(number))
    }

    /// Reads a number of halves within `range`, written like `7.5` or `7`; the numbers here are twice the written ones.
    pub fn halves(
        &mut self,
        key: &'static str,
        default: u16,
        range: RangeInclusive<u16>,
    ) -> Result<u16, ParseGameError> {
        let Some(text) = self.take(key) else {
            return Ok(default);
        };
        let written = |halves: u16| match halves % 2 {
            0 => (halves / 2).to_string(),
            _ => format!("{}.5", halves / 2),
        };
        // Only the one way of writing it, so that one game has one id.
        let halves = range.clone().find(|&halves| written(halves) == text);
        match halves {
            Some(halves) => {
                if halves != default {
                    self.canonical.push(format!("{key}={text}"));
                }
                Ok(halves)
            }
            None => {
                let expected = format!(
                    "a whole number or one with .5 from {} to {}",
                    written(*range.start()),
                    written(*range.end())
                );
                Err(self.bad_value(key, text, expected))
            }
        }
    }

    /// Reads one of several names; the first is the default.
    pub fn choice<T: Copy>(&mut self, key: &'static str, choices: &[(&str, T)]) -> Result<T, ParseGameError> {
        let text = self.take(key).unwrap_or_else(|| choices[0].0.to_owned());
        match choices.iter().position(|(name, _)| *name == text) {
            Some(index) => {
                if index > 0 {
                    self.canonical.push(format!("{key}={text}"));
                }
                Ok(choices[index].1)
            }
            None => {
                let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
                Err(self.bad_value(key, text, format!("one of {}", names.join(", "))))
            }
        }
    }

    /// The error for a value that is refused for the family's own reason.
    pub fn bad_value(&self, key: &'static str, value: impl ToString, expected: impl Into<String>) -> ParseGameError {
        ParseGameError::BadValue {
            game: self.game,
            key,
            value: value.to_string(),
            expected: expected.into(),
        }
    }

    /// Refuses parameters that nobody asked for and returns the canonical id.
    pub fn finish(self) -> Result<String, ParseGameError> {
        if let Some((key, _)) = self.given.into_iter().next() {
            let known = if self.asked.is_empty() {
                "none".to_owned()
            } else {
                self.asked.join(", ")
            };
            return Err(ParseGameError::UnknownParameter {
                game: self.game,
                key,
                known,
            });
        }
        if self.canonical.is_empty() {
            return Ok(self.game.to_owned());
        }
        Ok(format!("{}?{}", self.game, self.canonical.join("&")))
    }

    fn take(&mut self, key: &'static str) -> Option<String> {
        self.asked.push(key);
        let index = self.given.iter().position(|(given, _)| given == key)?;
        Some(self.given.remove(index).1)
    }
}
