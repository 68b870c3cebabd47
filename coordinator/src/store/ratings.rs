//! What the ratings are made from: every match game, by pairing.

use rusqlite::{Connection, params};
use tengen_control::GameScore;
use tengen_control::rating::Counts;
use tengen_records::{ModelId, NetworkPlay, Player};

use super::StoreError;

/// What a match game was played for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchKind {
    /// A gate.
    Gate,
    /// The ratings alone.
    Rating,
}

/// Games between two players, from the first one's view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairingRow {
    /// One player.
    pub first: Player,
    /// The other one.
    pub second: Player,
    /// Their games.
    pub counts: Counts,
    /// Openings that their rating matches were given.
    pub openings: u32,
}

/// The player that gates know a network as.
pub fn as_gated(network: ModelId) -> Player {
    Player::Network {
        network,
        play: NetworkPlay::AsOrdered,
    }
}

/// Every pairing that has games or openings.
pub fn pairings(connection: &Connection) -> Result<Vec<PairingRow>, StoreError> {
    let sql = "SELECT first, second, wins, draws, losses, openings FROM pairings ORDER BY first, second";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let mut pairings = Vec::new();
    while let Some(row) = rows.next()? {
        let counts = Counts {
            wins: row.get(2)?,
            draws: row.get(3)?,
            losses: row.get(4)?,
        };
        pairings.push(PairingRow {
            first: player(row.get_ref(0)?.as_str()?)?,
            second: player(row.get_ref(1)?.as_str()?)?,
            counts,
            openings: row.get(5)?,
        });
    }
    Ok(pairings)
}

fn player(text: &str) -> Result<Player, StoreError> {
    text.parse().map_err(|error| StoreError::corrupt("player", error))
}

/// Games of rating matches stored so far.
pub fn rated_games(connection: &Connection) -> Result<u64, StoreError> {
    let sql = "SELECT coalesce(sum(rated), 0) FROM pairings";
    Ok(connection.query_row(sql, [], |row| row.get(0))?)
}

/// Notes that the openings of a pairing up to this number are given to its rating matches.
pub fn set_openings(connection: &Connection, players: &[Player; 2], openings: u32) -> Result<(), StoreError> {
    let [first, second] = ordered(players);
    let sql = "INSERT INTO pairings VALUES (?1, ?2, 0, 0, 0, 0, ?3) ON CONFLICT DO UPDATE SET openings = ?3";
    connection
        .prepare_cached(sql)?
        .execute(params![first, second, openings])?;
    Ok(())
}

/// Counts a stored match game; `score` is the first player's.
pub fn add_game(
    connection: &Connection,
    players: &[Player; 2],
    score: GameScore,
    kind: MatchKind,
) -> Result<(), StoreError> {
    let [first, second] = ordered(players);
    let turned = first != players[0].to_string();
    let (wins, draws, losses) = match (score, turned) {
        (GameScore::Win, false) | (GameScore::Loss, true) => (1, 0, 0),
        (GameScore::Draw, _) => (0, 1, 0),
        (GameScore::Loss, false) | (GameScore::Win, true) => (0, 0, 1),
    };
    let rated = u32::from(kind == MatchKind::Rating);
    let sql = "INSERT INTO pairings VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0) ON CONFLICT DO UPDATE SET \
               wins = wins + ?3, draws = draws + ?4, losses = losses + ?5, rated = rated + ?6";
    connection
        .prepare_cached(sql)?
        .execute(params![first, second, wins, draws, losses, rated])?;
    Ok(())
}

/// The texts of two players, the lesser first.
fn ordered(players: &[Player; 2]) -> [String; 2] {
    let mut texts = [players[0].to_string(), players[1].to_string()];
    texts.sort_unstable();
    texts
}

#[cfg(test)]
mod tests {
    use super::super::open_writer;
    use super::*;

    #[test]
    fn games_are_counted_from_both_sides() {
        let folder = tempfile::tempdir().unwrap();
        let connection = open_writer(folder.path()).unwrap();
        let players = [Player::Random, Player::OnePly];
        let turned = [Player::OnePly, Player::Random];
        set_openings(&connection, &players, 3).unwrap();
        add_game(&connection, &players, GameScore::Win, MatchKind::Rating).unwrap();
        add_game(&connection, &turned, GameScore::Win, MatchKind::Rating).unwrap();
        add_game(&connection, &turned, GameScore::Win, MatchKind::Gate).unwrap();
        add_game(&connection, &players, GameScore::Draw, MatchKind::Rating).unwrap();
        set_openings(&connection, &turned, 5).unwrap();
        let row = PairingRow {
            first: Player::OnePly,
            second: Player::Random,
            counts: Counts {
                wins: 2,
                draws: 1,
                losses: 1,
            },
            openings: 5,
        };
        assert_eq!(pairings(&connection).unwrap(), [row]);
        assert_eq!(rated_games(&connection).unwrap(), 3);
    }
}
