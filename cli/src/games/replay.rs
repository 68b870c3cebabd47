//! `tengen games replay`: a stored game's searches again, from its seed and networks; or a walk through what its record
//! says.

use std::sync::Arc;

use anyhow::{Context, ensure};
use clap::Args;
use serde_json::{Value, json};
use tengen_games::{AnyGame, Game, GameVisitor};
use tengen_inference::{Device, SessionOptions};
use tengen_proto::v1;
use tengen_records::exchange::game_of;
use tengen_records::{Precision, Record};
use tengen_selfplay::reproduce::{
    Agreement, PlyComparison, ReproduceError, agreement, precision_of, reproduce, tolerance,
};
use tengen_selfplay::wire::order_from_wire;
use tengen_selfplay::{Lease, ModelBytes, SessionEvaluator};

use super::show;
use super::source::{Found, OneGameArgs, get, record};
use super::step;
use crate::client::Reached;
use crate::models;
use crate::pull::{self, variant};

#[derive(Args, Debug)]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    game: OneGameArgs,
    /// Step through the record instead: the board, the move and its search, ply by ply
    #[arg(long, conflicts_with = "json")]
    step: bool,
    /// `auto`, `cpu`, `openvino`, `cuda:N` or `tensorrt:N`
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: Device,
    /// Print one JSON object instead of words
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: ReplayArgs) -> anyhow::Result<()> {
    if args.step {
        let Found { record, stored } = args.game.find().await?;
        print!("{}", show::heading(&record, stored.as_ref()));
        return step::through(&record, &mut std::io::stdin().lock(), &mut std::io::stdout());
    }
    let run = args.game.reach().await?;
    let stored = get(&run, args.game.name()).await?;
    let record = record(&stored)?;
    let game = game_of(&record)?;
    let lease = lease(&run, &stored, &record).await?;
    tengen_inference::init_for(&args.device.into(), None)?;
    let evaluator = SessionEvaluator::new(SessionOptions {
        device: args.device,
        intra_threads: 1,
        batch_max: 1,
    });
    let (played, again) = (record.clone(), game.clone());
    let search = move || {
        again.visit(Search {
            record: &played,
            lease: &lease,
            evaluator,
        })
    };
    let plies = tokio::task::spawn_blocking(search).await??;
    let agreement = agreement(&plies);
    if args.json {
        println!("{}", as_json(&game, &record, &plies, agreement));
    } else {
        print!(
            "{}{}",
            show::heading(&record, Some(&stored)),
            table(&game, &record, &plies)
        );
        println!("{}", in_words(agreement, tolerance(&record)));
    }
    ensure!(
        is_honest(agreement),
        "the game is not what its seed and networks lead to here"
    );
    Ok(())
}

/// The order the game was played under, with its networks, each in the precision that the game's searches state.
async fn lease(run: &Reached, stored: &v1::StoredGame, record: &Record) -> anyhow::Result<Arc<Lease>> {
    let order = stored
        .work_order
        .as_ref()
        .context("the work order of the game is gone")?;
    let order = order_from_wire(order)?;
    let mut client = run.models()?;
    let mut networks = Vec::with_capacity(order.models.len());
    for id in &order.models {
        let model = models::find(&mut client, &id.to_string()).await?;
        let gone = || format!("network {} cannot be had any more", id.short());
        networks.push(match precision_of(record, *id)? {
            Precision::Fp32 => ModelBytes::new(pull::download(&mut client, &model).await.with_context(gone)?),
            precision => {
                let variant = variant::find(&model, precision).with_context(|| {
                    format!(
                        "network {} does not come in {precision}, in which it was played",
                        id.short()
                    )
                })?;
                let bytes = pull::download_variant(&mut client, variant).await;
                ModelBytes::variant(*id, precision, bytes.with_context(gone)?)
            }
        });
    }
    Ok(Lease::new(record.run_id.clone(), order, networks)?)
}

struct Search<'a> {
    record: &'a Record,
    lease: &'a Arc<Lease>,
    evaluator: SessionEvaluator,
}

impl GameVisitor for Search<'_> {
    type Output = Result<Vec<PlyComparison>, ReproduceError>;

    fn visit<G: Game>(self, game: G) -> Self::Output {
        reproduce(game, self.record, self.lease, self.evaluator)
    }
}

/// Whether the game is one that honest hardware may have played.
fn is_honest(agreement: Agreement) -> bool {
    match agreement {
        Agreement::Identical | Agreement::Within { .. } | Agreement::OtherVisits { .. } => true,
        Agreement::OtherSymmetry { .. } | Agreement::OtherNetwork { .. } | Agreement::OtherChoice { .. } => false,
    }
}

fn in_words(agreement: Agreement, tolerance: f32) -> String {
    match agreement {
        Agreement::Identical => "every search is the same to the bit".to_owned(),
        Agreement::Within { greatest } => format!(
            "every visit is the same; numbers differ by up to {greatest:.1e}, less than {tolerance:.0e} is honest: another \
             batch size, processor or build of ONNX Runtime rounds otherwise"
        ),
        Agreement::OtherVisits { ply } => format!(
            "the networks agree within {tolerance:.0e} up to ply {ply}, where the search goes another way: a difference of \
             rounding tipped a visit, and what follows from it may differ more"
        ),
        Agreement::OtherSymmetry { ply } => format!(
            "ply {ply}: the record says that the network saw the position through another symmetry than the work order \
             prescribes: an actor of a build that does not know search.random_symmetry, or another search"
        ),
        Agreement::OtherNetwork { ply, difference } => format!(
            "ply {ply}: the network says something else by {difference:.1e}, less than {tolerance:.0e} is honest: another \
             network, other planes or hardware that computes otherwise"
        ),
        Agreement::OtherChoice { ply } => format!("ply {ply}: the player of this seed plays something else"),
    }
}

fn name(game: &AnyGame, action: tengen_games::Action) -> String {
    struct Name(tengen_games::Action);
    impl GameVisitor for Name {
        type Output = String;
        fn visit<G: Game>(self, game: G) -> String {
            game.action_text(self.0)
        }
    }
    game.visit(Name(action))
}

/// A line a ply.
fn table(game: &AnyGame, record: &Record, plies: &[PlyComparison]) -> String {
    let mut text = format!(
        "{:>4} {:<6} {:<14} {:<14} {:>9} {:>9} {:>9}\n",
        "ply", "seat", "played", "chosen now", "network", "visits", "value"
    );
    for ply in plies {
        let seat = record.plies[ply.ply].seat.index();
        text += &format!(
            "{:>4} {:<6} {:<14} {:<14} ",
            ply.ply,
            seat,
            name(game, ply.played),
            name(game, ply.chosen)
        );
        text += &match ply.search {
            Some(search) if search.identical => format!("{:>9}\n", "same"),
            Some(search) => format!(
                "{:>9.1e} {:>9.3} {:>9.1e}\n",
                search.network, search.visits, search.value
            ),
            None => format!("{:>9}\n", "-"),
        };
    }
    text
}

fn as_json(game: &AnyGame, record: &Record, plies: &[PlyComparison], agreement: Agreement) -> Value {
    let word = match agreement {
        Agreement::Identical => "identical",
        Agreement::Within { .. } => "within-tolerance",
        Agreement::OtherVisits { .. } => "other-visits",
        Agreement::OtherSymmetry { .. } => "other-symmetry",
        Agreement::OtherNetwork { .. } => "other-network",
        Agreement::OtherChoice { .. } => "other-choice",
    };
    let plies = plies.iter().map(|ply| {
        json!({
            "ply": ply.ply,
            "seat": record.plies[ply.ply].seat.index(),
            "played": name(game, ply.played),
            "chosen": name(game, ply.chosen),
            "identical": ply.search.map(|search| search.identical),
            "network": ply.search.map(|search| search.network),
            "visits": ply.search.map(|search| search.visits),
            "value": ply.search.map(|search| search.value),
        })
    });
    json!({
        "game": record.id.to_string(),
        "agreement": word,
        "tolerance": tolerance(record),
        "in_words": in_words(agreement, tolerance(record)),
        "plies": plies.collect::<Vec<_>>(),
    })
}
