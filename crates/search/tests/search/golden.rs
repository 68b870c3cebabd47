//! Small seeded searches as text. A change of the search shows here; accept it with `INSTA_UPDATE=always`.

use tengen_games::Game;
use tengen_search::{RootNoise, Settings, Tree};

use crate::drive::{arbitrary, rng, search};
use crate::thicket::Thicket;

fn check(name: &str, text: &str) {
    insta::with_settings!({ snapshot_path => "../golden", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, text);
    });
}

#[test]
fn a_seeded_search_with_noise_grows_the_golden_tree() {
    let game = Thicket::game(11, 6);
    let mut tree = Tree::new(game.clone(), game.start(), Settings::default());
    let mut rng = rng(5);
    search(&mut tree, 48, RootNoise::Dirichlet, 4, &mut rng, arbitrary(&game));
    let before = tree.dump(8);
    let action = tree.choose(1.0, &mut rng).unwrap();
    tree.advance(action).unwrap();
    search(&mut tree, 24, RootNoise::Dirichlet, 4, &mut rng, arbitrary(&game));
    check("thicket", &format!("{before}\nplayed {action}\n\n{}", tree.dump(8)));
}
