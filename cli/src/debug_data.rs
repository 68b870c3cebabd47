//! Whole searches of a player, a file a game: for looking into why it plays as it does.

use std::path::PathBuf;

use serde_json::{Value, json};
use tengen_games::{Action, AnyGame, Game, GameVisitor};
use tengen_search::{NodeStats, Wdl};
use tengen_selfplay::SearchTrace;
use tengen_selfplay::duel::DuelGame;
use tengen_service::files::write_atomic;

/// Where the files go.
#[derive(Clone, Debug)]
pub(crate) struct DebugFiles {
    /// Their folder.
    pub(crate) folder: PathBuf,
    /// The first and the second player, as they were named.
    pub(crate) players: [String; 2],
}

impl DebugFiles {
    /// Writes the file of one game.
    pub(crate) fn write(&self, game: &AnyGame, finished: &DuelGame) -> anyhow::Result<()> {
        let path = self.folder.join(format!("game-{:05}.json", finished.index));
        let text = self.page(&texts(game), &game.spec().id, finished).to_string() + "\n";
        Ok(write_atomic(&path, text.as_bytes())?)
    }

    fn page(&self, texts: &[String], game: &str, finished: &DuelGame) -> Value {
        let [player, opponent] = &self.players;
        let line = |actions: &[Action]| -> Vec<Value> { actions.iter().map(|&action| text(texts, action)).collect() };
        json!({
            "game": game,
            "index": finished.index,
            "player": player,
            "opponent": opponent,
            "seat": finished.first_seat.index(),
            "opening": line(&finished.opening),
            "actions": line(&finished.actions),
            "result": finished.score(),
            "reason": finished.outcome.reason.as_str(),
            "searches": finished.searches.iter().map(|search| one(texts, search)).collect::<Vec<_>>(),
        })
    }
}

fn one(texts: &[String], search: &SearchTrace) -> Value {
    let candidates = search.root.children.iter().map(|child| {
        json!({
            "action": text(texts, child.action),
            "n": child.visits,
            "q": child.q,
            "p": child.prior,
        })
    });
    json!({
        "ply": search.ply,
        "chosen": text(texts, search.chosen),
        "temperature": search.temperature,
        "milliseconds": search.time.as_secs_f64() * 1e3,
        "visits": search.root.visits_total,
        "visits_reused": search.root.visits_reused,
        "wdl": wdl(search.root.root_wdl),
        "network_wdl": wdl(search.root.net_wdl),
        "prior_kl": search.root.prior_kl(),
        "candidates": candidates.collect::<Vec<_>>(),
        "nodes": search.nodes.iter().map(|found| node(texts, found)).collect::<Vec<_>>(),
    })
}

fn node(texts: &[String], found: &NodeStats) -> Value {
    json!({
        "parent": found.from.map(|(parent, _)| parent),
        "action": found.from.map(|(_, action)| text(texts, action)),
        "seat": found.seat.index(),
        "n": found.visits,
        "q": found.q,
        "p": found.prior,
        "draw": found.draw,
        "network": found.own,
        "terminal": found.terminal,
    })
}

fn wdl(wdl: Wdl) -> [f32; 3] {
    [wdl.win, wdl.draw, wdl.loss]
}

fn text(texts: &[String], action: Action) -> Value {
    texts
        .get(action.index())
        .map_or(Value::Null, |text| text.as_str().into())
}

/// The notation of every action.
fn texts(game: &AnyGame) -> Vec<String> {
    struct Texts;
    impl GameVisitor for Texts {
        type Output = Vec<String>;
        fn visit<G: Game>(self, game: G) -> Vec<String> {
            let actions = 0..game.spec().actions.len();
            actions.map(|action| game.action_text(Action(action as u16))).collect()
        }
    }
    game.visit(Texts)
}
