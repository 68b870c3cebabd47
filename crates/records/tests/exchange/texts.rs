//! Spoilt position texts and lists of words: 100,000 of each, and nothing panics or breaks a promise.

use std::path::Path;

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_records::testing::exchange::spoil;
use tengen_records::testing::texts::{Text, Texts};

use super::spoilt::{SPOILT, pick};

/// Spoils honest texts; at least one in a hundred must still be read, or nothing was tried.
fn hammer(text: Text) {
    let texts = Texts::new(text);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let honest = texts.honest(&mut rng);
    for input in &honest {
        assert!(texts.judge(input), "{}", String::from_utf8_lossy(input));
    }
    let mut read = 0;
    for _ in 0..SPOILT {
        let input = spoil(pick(&honest, &mut rng), pick(&honest, &mut rng), &mut rng);
        read += u32::from(texts.judge(&input));
    }
    assert!(read > SPOILT / 100 && read < SPOILT, "{read} texts were read");
}

#[test]
fn no_spoilt_position_breaks_a_promise() {
    hammer(Text::Position);
}

#[test]
fn no_spoilt_list_of_moves_breaks_a_promise() {
    hammer(Text::Words);
}

/// The kept inputs of the two fuzz targets.
#[test]
fn every_kept_text_is_read() {
    for (text, target) in [(Text::Position, "parse_position"), (Text::Words, "play_words")] {
        let texts = Texts::new(text);
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../fuzz/seeds")
            .join(target);
        let mut inputs = 0;
        for file in std::fs::read_dir(folder).expect("a folder of kept inputs") {
            let path = file.expect("an entry").path();
            assert!(
                texts.judge(&std::fs::read(&path).expect("a kept input")),
                "{}",
                path.display()
            );
            inputs += 1;
        }
        assert!(inputs >= 4, "{target}: {inputs}");
    }
}
