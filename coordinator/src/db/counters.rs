//! Whether the numbers that the run counts with are those of its rows. One reading transaction, so that a running
//! coordinator cannot come in between.

use rusqlite::Connection;
use tengen_control::Tally;

use super::check::Report;
use crate::store::gates::{self, GateState};
use crate::store::{StoreError, models, progress, ratings};

/// Compares every counter with what it counts.
pub(super) fn check(connection: &Connection, report: &mut Report) -> Result<(), StoreError> {
    let moment = connection.unchecked_transaction()?;
    totals(&moment, report)?;
    rows(&moment, report)?;
    decided_gates(&moment, report)?;
    champion(&moment, report)
}

fn number(connection: &Connection, sql: &str) -> Result<u64, StoreError> {
    Ok(connection.query_row(sql, [], |row| row.get(0))?)
}

/// The totals of `progress`.
fn totals(connection: &Connection, report: &mut Report) -> Result<(), StoreError> {
    let run = progress::load(connection)?;
    let of_kind = |kind: &str| {
        let games = format!(
            "SELECT (SELECT count(*) FROM games WHERE kind = '{kind}') \
             + coalesce((SELECT games FROM removed_games WHERE kind = '{kind}'), 0)"
        );
        number(connection, &games)
    };
    let positions = "SELECT coalesce((SELECT sum(positions) FROM games WHERE kind = 'self-play'), 0) \
                     + coalesce((SELECT positions FROM removed_games WHERE kind = 'self-play'), 0)";
    let newest = "SELECT coalesce((SELECT positions_total FROM games ORDER BY sequence DESC LIMIT 1), \
                  (SELECT positions FROM progress))";
    let ids = "SELECT (SELECT count(*) FROM games) + coalesce((SELECT sum(games) FROM removed_games), 0)";
    for (what, counted, found) in [
        ("progress.self_play_games", run.self_play_games, of_kind("self-play")?),
        ("progress.match_games", run.match_games, of_kind("match")?),
        ("progress.positions", run.positions, number(connection, positions)?),
        (
            "positions_total of the newest game",
            number(connection, newest)?,
            run.positions,
        ),
        (
            "rows of gate_log, with the games of rating matches,",
            number(connection, "SELECT count(*) FROM gate_log")? + ratings::rated_games(connection)?,
            run.match_games,
        ),
        (
            "games of pairings",
            number(
                connection,
                "SELECT coalesce(sum(wins + draws + losses), 0) FROM pairings",
            )?,
            run.match_games,
        ),
        (
            "rows of game_ids",
            number(connection, "SELECT count(*) FROM game_ids")?,
            number(connection, ids)?,
        ),
    ] {
        if counted != found {
            report.add_counter(format!("{what} is {counted}, and the rows say {found}"));
        }
    }
    Ok(())
}

/// What each row says that other rows say too: a question whose answers are all faults, and the sentence for one.
const ROWS: [(&str, &str); 6] = [
    (
        "SELECT lower(hex(lease)) || ': stored is ' || stored || ', and ' || coalesce(n, 0) || ' of its games are' AS fault \
         FROM leases LEFT JOIN (SELECT lease, count(*) AS n FROM game_ids GROUP BY lease) USING (lease) \
         WHERE stored <> coalesce(n, 0)",
        "table leases: lease",
    ),
    (
        "SELECT lower(hex(lease)) || ', index ' || game_index AS fault FROM game_ids LEFT JOIN leases USING (lease) \
         WHERE leases.actor IS NULL",
        "table game_ids: no lease for game",
    ),
    (
        "SELECT games.sequence AS fault FROM games LEFT JOIN game_ids USING (lease, game_index) \
         WHERE game_ids.sequence IS NOT games.sequence",
        "table games: no id for game",
    ),
    (
        "SELECT sequence || ': ' || positions_total || ' after ' || before || ' and ' || positions AS fault \
         FROM (SELECT sequence, positions, positions_total, lag(positions_total) OVER (ORDER BY sequence) AS before \
         FROM games WHERE kind = 'self-play') WHERE before + positions <> positions_total",
        "table games: positions_total does not follow from the game before in game",
    ),
    (
        "SELECT gate_log.sequence || ' of gate ' || gate AS fault FROM gate_log LEFT JOIN game_ids \
         USING (lease, sequence) WHERE game_ids.hash IS NULL",
        "table gate_log: no id for game",
    ),
    (
        "SELECT gate_log.sequence || ' of gate ' || gate AS fault FROM gate_log JOIN gates USING (gate) \
         LEFT JOIN games ON games.sequence = gate_log.sequence \
         WHERE gates.state IN ('open', 'promoted') AND games.record IS NULL",
        "table gate_log: the evidence is gone for game",
    ),
];

fn rows(connection: &Connection, report: &mut Report) -> Result<(), StoreError> {
    for (sql, what) in ROWS {
        let mut statement = connection.prepare(&format!("SELECT CAST(fault AS TEXT) FROM ({sql})"))?;
        let mut faults = statement.query([])?;
        while let Some(row) = faults.next()? {
            report.add_counter(format!("{what} {}", row.get::<_, String>(0)?));
        }
    }
    Ok(())
}

/// Every decided gate counted again from its log.
fn decided_gates(connection: &Connection, report: &mut Report) -> Result<(), StoreError> {
    let mut before = u32::MAX;
    loop {
        let page = gates::list(connection, before, 256)?;
        let Some(last) = page.last() else { return Ok(()) };
        before = last.id;
        for gate in page.iter().filter(|gate| gate.state != GateState::Open) {
            let again = gate.restore(&gates::log(connection, gate.id)?).tally();
            // Before schema 8 nobody noted what each pair brought.
            let noted = match gate.tally.pairs_by_half_points {
                [0, 0, 0, 0, 0] => Tally {
                    pairs_by_half_points: [0; 5],
                    ..again
                },
                _ => again,
            };
            if noted != gate.tally {
                let (stored, id) = (gate.tally, gate.id);
                report.add_counter(format!(
                    "table gates: gate {id} says {stored:?}, and its log says {again:?}"
                ));
            }
        }
    }
}

/// There is one champion, and everything agrees who it is.
fn champion(connection: &Connection, report: &mut Report) -> Result<(), StoreError> {
    let champions = number(connection, "SELECT count(*) FROM models WHERE state = 'champion'")?;
    if champions != 1 {
        report.add_counter(format!("table models: {champions} networks are champion"));
    }
    let run = progress::load(connection)?;
    if let Some(champion) = models::champion(connection)?
        && (champion.id, champion.generation) != (run.champion, Some(run.generation))
    {
        report.add_counter(format!(
            "table progress: the champion is {} of generation {}, and table models says {} of generation {:?}",
            run.champion, run.generation, champion.id, champion.generation
        ));
    }
    Ok(())
}
