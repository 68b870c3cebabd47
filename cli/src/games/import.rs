//! `tengen games import`: games of other programs, checked and prepared for training.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use clap::Args;
use serde_json::json;
use tengen_records::exchange::game_of;
use tengen_records::exchange::set::{Augmentation, Division, MANIFEST, Set, Source};
use tengen_service::files::write_atomic;

use super::source::{FileArgs, FileReader};

#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    /// Files of games: .json, .jsonl, .sgf, .psq, .datapoints, .rif, .xml or .binpb
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Folder to write the prepared sets into, one for each game that the files are of
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    format: FileArgs,
    /// Share of the games that train; the others validate
    #[arg(long, value_name = "SHARE", default_value_t = 0.95)]
    train_split: f64,
    /// Say in the manifest that training shall see positions through the symmetries of the game
    #[arg(long)]
    augment: bool,
    /// Print one JSON object instead of words
    #[arg(long)]
    json: bool,
}

/// A game that was refused.
struct Refused {
    file: String,
    line: usize,
    game: String,
    reason: String,
}

pub(crate) fn run(args: &ImportArgs) -> anyhow::Result<()> {
    let share = args.train_split;
    ensure!(
        share > 0.0 && share <= 1.0,
        "--train-split is {share}, and must be above 0 and at most 1"
    );
    let division = Division {
        train_split: share,
        augmentation: if args.augment {
            Augmentation::Symmetries
        } else {
            Augmentation::None
        },
    };
    let mut reader = FileReader::new(&args.format);
    let mut sets: BTreeMap<String, Set> = BTreeMap::new();
    let (mut sources, mut refused) = (Vec::new(), Vec::new());
    for path in &args.files {
        let file = path.display().to_string();
        let mut source = Source {
            file: file.clone(),
            games: 0,
            refused: 0,
        };
        for imported in reader.read(path)? {
            match imported.record {
                Ok(record) => {
                    source.games += 1;
                    let set = match sets.entry(record.game_id.clone()) {
                        std::collections::btree_map::Entry::Occupied(set) => set.into_mut(),
                        std::collections::btree_map::Entry::Vacant(place) => {
                            place.insert(Set::new(game_of(&record)?, division))
                        }
                    };
                    set.add(&record);
                }
                Err(error) => {
                    source.refused += 1;
                    refused.push(Refused {
                        file: file.clone(),
                        line: imported.line,
                        game: imported.label,
                        reason: error.to_string(),
                    });
                }
            }
        }
        sources.push(source);
    }
    let mut written = Vec::new();
    for set in sets.values() {
        written.push((write(set, &args.out, &sources)?, set.games()));
    }
    tell(args, &sources, &refused, &written);
    if written.is_empty() {
        bail!("no game could be read, and nothing was written");
    }
    Ok(())
}

/// Writes the set into a folder of `parent` and says which. The manifest comes last: without it there is no set.
fn write(set: &Set, parent: &Path, sources: &[Source]) -> anyhow::Result<PathBuf> {
    let manifest = set.manifest(sources);
    let folder = parent.join(&manifest.name);
    for (file, bytes) in set.files() {
        write_atomic(&folder.join(file), bytes)?;
    }
    let text = serde_json::to_string_pretty(&manifest)? + "\n";
    write_atomic(&folder.join(MANIFEST), text.as_bytes())?;
    Ok(folder)
}

fn tell(args: &ImportArgs, sources: &[Source], refused: &[Refused], written: &[(PathBuf, u64)]) {
    if args.json {
        let sets = written
            .iter()
            .map(|(folder, games)| json!({ "folder": folder, "games": games }));
        let refused = refused.iter().map(|refused| {
            json!({ "file": refused.file, "line": refused.line, "game": refused.game, "reason": refused.reason })
        });
        let shown = json!({
            "sets": sets.collect::<Vec<_>>(),
            "sources": sources,
            "refused": refused.collect::<Vec<_>>(),
        });
        println!("{shown}");
        return;
    }
    for Refused {
        file,
        line,
        game,
        reason,
    } in refused
    {
        println!("{file}:{line}: {game}: {reason}");
    }
    let games: u64 = sources.iter().map(|source| source.games).sum();
    println!("{games} games read, {} refused", refused.len());
    for (folder, games) in written {
        println!("{} ({games} games)", folder.display());
    }
}
