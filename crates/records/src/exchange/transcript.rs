//! A game as a file of another program tells it, and how it becomes a record.

use tengen_games::{Action, AnyGame, Fingerprint, Game, GameVisitor, Outcome, Reason, Roles, Seat, State};

use crate::ids::{LeaseId, RecordId, RunId};
use crate::player::{HUMAN_NAME_LEN_MAX, Player};
use crate::record::{Kind, ModelIndex, PlyRecord, Record};
use crate::rejection::{ReasonCode, Rejection};
use crate::wire::PLIES_MAX;

/// Who is named nowhere.
pub(super) const UNKNOWN: &str = "unknown";

/// The run that records of imported games name.
pub const IMPORT_RUN: &str = "imported";

/// One of the two colours of a game: the first is black, X, or whoever begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Black.
    First,
    /// White.
    Second,
}

impl Colour {
    /// The seat that holds it. Where the game fixes no colours seat 0 has the first.
    pub fn seat(self, roles: Roles) -> Seat {
        let first = roles.first_colour.unwrap_or(Seat::FIRST);
        match self {
            Colour::First => first,
            Colour::Second => first.other(),
        }
    }

    /// The other one.
    pub const fn other(self) -> Colour {
        match self {
            Colour::First => Colour::Second,
            Colour::Second => Colour::First,
        }
    }

    /// `black` or `white`.
    pub const fn word(self) -> &'static str {
        match self {
            Colour::First => "black",
            Colour::Second => "white",
        }
    }
}

/// How a file says the game ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stated {
    /// Nobody won.
    Draw,
    /// A colour won.
    Colour(Colour),
    /// A seat won.
    Seat(Seat),
}

/// Who played, as a file says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Names {
    /// Seat 0 and seat 1.
    Seats([String; 2]),
    /// The holders of the first and of the second colour.
    Colours([String; 2]),
}

/// A game as a file tells it: not checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Transcript {
    /// The game's canonical id.
    pub game_id: String,
    /// Actions at the beginning that are given, not learned from.
    pub opening_plies: usize,
    /// Every action, those of the opening first.
    pub actions: Vec<Action>,
    /// How it ended, where the file says so.
    pub stated: Option<Stated>,
    /// Who played.
    pub names: Names,
    /// The file's seed, 0 where it has none.
    pub seed: u64,
    /// When it ended, milliseconds since the Unix epoch; 0 where the file does not say.
    pub created_unix_ms: i64,
    /// How long it took, milliseconds; 0 where the file does not say.
    pub duration_ms: u32,
}

impl Transcript {
    /// Plays the game through the rules of `game`, whose fingerprint is `rules`, and makes its record: a match of two
    /// named players without searches. Its id follows from what was played and by whom, so that the same game has the
    /// same id again.
    ///
    /// A game that stops before the rules end it counts as the file says: a winner by resignation, a draw by a move limit.
    ///
    /// # Errors
    /// The first ply the rules refuse, or an end that is not theirs.
    pub fn record(&self, game: &AnyGame, rules: Fingerprint) -> Result<Record, Rejection> {
        struct Play<'a>(&'a Transcript, Fingerprint);
        impl GameVisitor for Play<'_> {
            type Output = Result<Record, Rejection>;
            fn visit<G: Game>(self, game: G) -> Self::Output {
                self.0.played(&game, self.1)
            }
        }
        game.visit(Play(self, rules))
    }

    fn played<G: Game>(&self, game: &G, rules: Fingerprint) -> Result<Record, Rejection> {
        if self.actions.len() > PLIES_MAX {
            let detail = format!("{} plies, at most {PLIES_MAX} are possible", self.actions.len());
            return Err(Rejection::new(ReasonCode::TooLarge, detail));
        }
        let mut state = game.start();
        let mut plies = Vec::with_capacity(self.actions.len());
        for (n, &action) in self.actions.iter().enumerate() {
            let refuse = |code, why: String| {
                let text = game.action_text(action);
                Err(Rejection::new(code, format!("ply {n} ({text}): {why}")))
            };
            if let Some(outcome) = state.outcome() {
                return refuse(
                    ReasonCode::PliesAfterEnd,
                    format!("the game is over ({})", outcome.reason.as_str()),
                );
            }
            let seat = state.seat();
            if let Err(error) = state.apply(action) {
                return refuse(ReasonCode::IllegalAction, error.why.to_owned());
            }
            if n >= self.opening_plies {
                plies.push(PlyRecord {
                    seat,
                    action,
                    model: ModelIndex(seat.index() as u8),
                    search: None,
                });
            }
        }
        let outcome = self.outcome(&state)?;
        let roles = state.roles();
        Ok(self.heading(rules, roles, outcome, plies))
    }

    /// The rules' own end, which what is stated must not contradict; where they have none, the stated one.
    fn outcome<S: State>(&self, state: &S) -> Result<Outcome, Rejection> {
        let roles = state.roles();
        let stated = self.stated.map(|stated| match stated {
            Stated::Draw => None,
            Stated::Colour(colour) => Some(colour.seat(roles)),
            Stated::Seat(seat) => Some(seat),
        });
        match (state.outcome(), stated) {
            (Some(outcome), Some(winner)) if outcome.winner != winner => {
                let word = |winner: Option<Seat>| {
                    winner.map_or_else(|| "a draw".to_owned(), |seat| format!("a win of {seat}"))
                };
                let detail = format!(
                    "the file states {}, the rules say {} ({})",
                    word(winner),
                    word(outcome.winner),
                    outcome.reason.as_str()
                );
                Err(Rejection::new(ReasonCode::WrongResult, detail))
            }
            (Some(outcome), _) => Ok(outcome),
            (None, Some(Some(winner))) => Ok(Outcome::win(winner, Reason::Resignation)),
            (None, Some(None)) => Ok(Outcome::draw(Reason::MoveLimit)),
            (None, None) => {
                let detail = format!(
                    "after {} plies the game goes on, and the file states no result",
                    self.actions.len()
                );
                Err(Rejection::new(ReasonCode::Unfinished, detail))
            }
        }
    }

    fn heading(&self, rules: Fingerprint, roles: Roles, outcome: Outcome, plies: Vec<PlyRecord>) -> Record {
        let names = match &self.names {
            Names::Seats(names) => names.clone(),
            Names::Colours(names) => {
                let first = Colour::First.seat(roles);
                Seat::BOTH.map(|seat| names[usize::from(seat != first)].clone())
            }
        };
        let players = names.map(|name| person(&name));
        Record {
            id: RecordId {
                lease: self.lease(&players),
                index: 0,
            },
            run_id: RunId::new(IMPORT_RUN).expect("a legal run id"),
            game_id: self.game_id.clone(),
            rules_fingerprint: rules,
            kind: Kind::Match,
            models: Vec::new(),
            players: Some(players),
            seat_models: [ModelIndex(0), ModelIndex(1)],
            settings_revision: 0,
            seed: self.seed,
            opening: self.actions[..self.opening_plies.min(self.actions.len())].to_vec(),
            plies,
            outcome,
            roles,
            created_unix_ms: self.created_unix_ms,
            duration_ms: self.duration_ms,
            match_pair: 0,
        }
    }

    /// A lease id that stands for this game and no other.
    fn lease(&self, players: &[Player; 2]) -> LeaseId {
        let mut hasher = blake3::Hasher::new();
        let mut part = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        part(b"tengen/v1/imported-game");
        part(self.game_id.as_bytes());
        part(&(self.opening_plies as u64).to_le_bytes());
        let actions: Vec<u8> = self.actions.iter().flat_map(|action| action.0.to_le_bytes()).collect();
        part(&actions);
        players.iter().for_each(|player| part(player.to_string().as_bytes()));
        part(&self.created_unix_ms.to_le_bytes());
        let mut id = [0; 16];
        hasher.finalize_xof().fill(&mut id);
        LeaseId(u128::from_be_bytes(id))
    }
}

/// Somebody of this name; letters that names do not have become dashes.
fn person(name: &str) -> Player {
    let plain = |letter: char| match letter {
        'A'..='Z' | 'a'..='z' | '0'..='9' | '-' | '_' | '.' => letter,
        _ => '-',
    };
    let name: String = name.trim().chars().map(plain).take(HUMAN_NAME_LEN_MAX).collect();
    let name = if name.is_empty() { UNKNOWN.to_owned() } else { name };
    format!("human:{name}").parse().expect("the letters are those of names")
}

/// What formats call the players of seat 0 and seat 1: a person's name, or the player in the notation of records. Where
/// both are the same, `@a` and `@b` tell the seats apart.
pub fn seat_names(record: &Record) -> [String; 2] {
    let name = |index: ModelIndex| match &record.players {
        Some(players) => players.get(index.index()).map(|player| match player {
            Player::Human(name) => name.as_str().to_owned(),
            other => other.to_string(),
        }),
        None => record.models.get(index.index()).map(ToString::to_string),
    };
    let [first, second] = record
        .seat_models
        .map(|index| name(index).unwrap_or_else(|| UNKNOWN.to_owned()));
    if first == second {
        [format!("{first}@a"), format!("{second}@b")]
    } else {
        [first, second]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_what_names_may_have() {
        assert_eq!(person(" Ann Lee ").to_string(), "human:Ann-Lee");
        assert_eq!(person("").to_string(), "human:unknown");
        assert_eq!(person("gen12@a").to_string(), "human:gen12-a");
        assert_eq!(person(&"ö".repeat(99)).to_string(), format!("human:{}", "-".repeat(40)));
    }

    fn tic_tac_toe(actions: &[u16], stated: Option<Stated>) -> Result<Record, Rejection> {
        let game = AnyGame::parse("tic-tac-toe").unwrap();
        let transcript = Transcript {
            game_id: "tic-tac-toe".to_owned(),
            opening_plies: 1,
            actions: actions.iter().map(|&action| Action(action)).collect(),
            stated,
            names: Names::Colours(["ann".to_owned(), "bert".to_owned()]),
            seed: 0,
            created_unix_ms: 0,
            duration_ms: 0,
        };
        transcript.record(&game, game.rules_fingerprint())
    }

    #[test]
    fn the_rules_name_the_end_and_a_file_may_not_contradict_them() {
        let won = tic_tac_toe(&[0, 3, 1, 4, 2], None).unwrap();
        assert_eq!(won.outcome, Outcome::win(Seat::FIRST, Reason::Line));
        assert_eq!((won.opening.len(), won.plies.len()), (1, 4));
        let refused = tic_tac_toe(&[0, 3, 1, 4, 2], Some(Stated::Draw)).unwrap_err();
        assert_eq!(refused.code, ReasonCode::WrongResult);
        let refused = tic_tac_toe(&[0, 3, 1, 4, 2, 5], None).unwrap_err();
        assert_eq!(refused.code, ReasonCode::PliesAfterEnd);
        assert!(refused.detail.starts_with("ply 5 (c2)"), "{}", refused.detail);
        assert_eq!(tic_tac_toe(&[0, 0], None).unwrap_err().code, ReasonCode::IllegalAction);
    }

    #[test]
    fn a_game_that_was_broken_off_counts_as_stated_and_not_otherwise() {
        assert_eq!(tic_tac_toe(&[0, 3], None).unwrap_err().code, ReasonCode::Unfinished);
        let resigned = tic_tac_toe(&[0, 3], Some(Stated::Colour(Colour::Second))).unwrap();
        assert_eq!(resigned.outcome, Outcome::win(Seat::SECOND, Reason::Resignation));
        let agreed = tic_tac_toe(&[0, 3], Some(Stated::Draw)).unwrap();
        assert_eq!(agreed.outcome, Outcome::draw(Reason::MoveLimit));
        assert_eq!(agreed.id, tic_tac_toe(&[0, 3], Some(Stated::Draw)).unwrap().id);
        assert_ne!(agreed.id, tic_tac_toe(&[0, 4], Some(Stated::Draw)).unwrap().id);
    }
}
