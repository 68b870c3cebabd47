//! `docs/games.md` says what the registry says.

#[test]
fn the_page_of_the_games_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/games.md");
    let page = std::fs::read_to_string(path).expect("docs/games.md is there");
    assert!(
        page == tengen_games::page::games(),
        "docs/games.md is not current: cargo run -p tengen-games --example games_page > docs/games.md"
    );
}

#[test]
fn every_game_has_a_section_within_the_width_of_a_page() {
    let page = tengen_games::page::games();
    for entry in tengen_games::registry::entries() {
        assert!(page.contains(&format!("\n## {}\n", entry.name)), "{}", entry.name);
    }
    let text = page.lines().filter(|line| !line.starts_with('|'));
    assert!(text.into_iter().all(|line| line.chars().count() <= 125), "{page}");
}
