//! The page `docs/games.md`: every registered game with its rules, planes and actions, written from family and spec.
//!
//! It only writes text; the example `games_page` prints it.

use std::fmt::Write;

use crate::game::{Action, Game};
use crate::registry::{self, AnyGame, Entry, GameVisitor};
use crate::spec::{ActionBlock, OpeningRule, Spec};

const WIDTH: usize = 118;

const HEAD: &str = "# The games\n\nThis page is written by `cargo run -p tengen-games --example games_page > docs/games.md`; \
    a test fails when it is not\ncurrent. A game is named `NAME?key=value&key=value`; parameters at their default are left out. \
    Sizes, planes and actions\nbelow are those of the defaults.\n\nPlanes are bytes as the acting seat sees them; the network's \
    input is the byte times the scale. `history` and\n`threat_planes` change planes only, so games recorded with other planes \
    stay good.\n\nActions are written as an index or as below. Cells of boards are a column letter and a row number, from the bottom\n\
    unless the game says otherwise.\n";

/// The whole page. Registered defaults always parse; one that did not would leave its section out.
pub fn games() -> String {
    let mut page = HEAD.to_owned();
    for entry in registry::entries() {
        if let Ok(game) = AnyGame::parse(entry.name) {
            page.push_str(&game.visit(Section(entry)));
        }
    }
    page
}

struct Section(&'static Entry);

impl GameVisitor for Section {
    type Output = String;

    fn visit<G: Game>(self, game: G) -> String {
        let Section(entry) = self;
        let spec = game.spec();
        let mut text = format!("\n## {}\n\n", entry.name);
        push_wrapped(&mut text, &format!("{}.", sentence(entry.summary)));
        push_wrapped(&mut text, entry.rules);
        push_wrapped(&mut text, &format!("Parameters: {}.", entry.parameters));
        push_wrapped(&mut text, &sizes(spec));
        text.push_str("| plane | shows | scale |\n|---|---|---|\n");
        for (index, plane) in spec.planes.iter().enumerate() {
            let scale = if plane.scale == 1.0 {
                "1".to_owned()
            } else {
                format!("1/{}", (1.0 / plane.scale).round())
            };
            push_row(&mut text, &[&index.to_string(), plane.name, &scale]);
        }
        text.push_str("\n| actions | mean | written |\n|---|---|---|\n");
        push_actions(&mut text, &game);
        text
    }
}

/// Board, planes, actions, symmetries, opening and length.
fn sizes(spec: &Spec) -> String {
    let opening = match spec.opening {
        OpeningRule::None => "",
        OpeningRule::Swap2 => "Swap2 opening; ",
    };
    format!(
        "Defaults: board of {}x{}; {} planes; {} actions; {} symmetries; {opening}at most {} plies.",
        spec.rows,
        spec.cols,
        spec.planes.len(),
        spec.actions.len(),
        spec.symmetries.len(),
        spec.plies_max,
    )
}

/// One row for each run of actions on the board, one for each action that belongs to no place.
fn push_actions<G: Game>(text: &mut String, game: &G) {
    let spec = game.spec();
    let mut first = 0;
    for &block in spec.actions.blocks() {
        let len = block.len(spec.rows, spec.cols);
        let written = |action: usize| format!("`{}`", game.action_text(Action(action as u16)));
        let mut push_run = |first: usize, len: usize, meaning: &str| {
            let last = first + len - 1;
            let numbers = format!("{first} to {last}");
            push_row(
                text,
                &[&numbers, meaning, &format!("{} to {}", written(first), written(last))],
            );
        };
        match block {
            ActionBlock::Cells { planes } => {
                for plane in 0..planes {
                    let cells = spec.cells();
                    push_run(first + plane * cells, cells, "one a cell, row by row from the top left");
                }
            }
            ActionBlock::Columns => push_run(first, len, "one a column, from the left"),
            ActionBlock::Triangle => push_run(first, len, "one a cell of the triangle, row by row from its tip"),
            ActionBlock::Global { .. } => {
                for action in first..first + len {
                    push_row(text, &[&action.to_string(), "no place on the board", &written(action)]);
                }
            }
        }
        first += len;
    }
}

fn push_row(text: &mut String, cells: &[&str]) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

/// Adds a paragraph, broken at spaces.
fn push_wrapped(text: &mut String, paragraph: &str) {
    let mut width = 0;
    for word in paragraph.split(' ') {
        let more = word.chars().count() + 1;
        if width > 0 {
            let breaks = width + more > WIDTH;
            text.push(if breaks { '\n' } else { ' ' });
            width = if breaks { 0 } else { width };
        }
        text.push_str(word);
        width += more;
    }
    text.push_str("\n\n");
}

/// With a capital letter in front.
fn sentence(summary: &str) -> String {
    let mut letters = summary.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}
