//! Prints the page `docs/games.md`.

fn main() {
    print!("{}", tengen_games::page::games());
}
