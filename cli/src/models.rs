//! `tengen models`: what networks a run has, one of them in full, and pulling one.

use anyhow::Context;
use clap::{Args, Subcommand};
use tengen_proto::v1::model_service_client::ModelServiceClient;
use tengen_proto::v1::{GetModelRequest, ListModelsRequest, Model, ModelState};
use tengen_service::channel::Channel;

use crate::client::{CoordinatorArgs, explain, goes_on};
use crate::pull::{self, variant};

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// List the run's networks, newest first, with the precisions that they come in beside fp32
    List(CoordinatorArgs),
    /// Show one network in full
    Show(NameArgs),
    /// Fetch one network with its description and checksums into a folder
    Pull(pull::PullArgs),
}

#[derive(Args, Debug)]
pub(crate) struct NameArgs {
    /// `champion`, `latest`, `gen:N`, or at least 8 hexadecimal digits of its id
    #[arg(default_value = "champion")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) coordinator: CoordinatorArgs,
}

pub(crate) async fn run(command: ModelsCommand) -> anyhow::Result<()> {
    match command {
        ModelsCommand::List(args) => list(&args).await,
        ModelsCommand::Show(args) => show(&args).await,
        ModelsCommand::Pull(args) => pull::run(args).await,
    }
}

async fn list(args: &CoordinatorArgs) -> anyhow::Result<()> {
    let run = args.reach().await?;
    let mut client = run.models()?;
    let mut request = ListModelsRequest {
        page_size: 100,
        page_token: String::new(),
    };
    println!(
        "{:<16} {:>9} {:>10} {:>8}  {:<16} verdict",
        "model", "iteration", "generation", "step", "state"
    );
    loop {
        let page = client
            .list_models(request.clone())
            .await
            .map_err(|status| explain(&status))?
            .into_inner();
        for model in &page.models {
            println!("{}", row(model));
            for (precision, variant) in variant::all(model) {
                println!("{:16} also in {}", "", variant::in_words(precision, variant));
            }
        }
        if !goes_on(&mut request.page_token, page.next_page_token)? {
            return Ok(());
        }
    }
}

fn row(model: &Model) -> String {
    format!(
        "{:<16} {:>9} {:>10} {:>8}  {:<16} {}",
        short_id(&model.model_id),
        model.iteration,
        model
            .generation
            .map_or_else(|| "-".to_owned(), |generation| generation.to_string()),
        model.step,
        state_name(model.state()),
        model.verdict
    )
}

async fn show(args: &NameArgs) -> anyhow::Result<()> {
    let run = args.coordinator.reach().await?;
    let mut client = run.models()?;
    let model = find(&mut client, &args.name).await?;
    println!("{}", serde_json::to_string_pretty(&pull::description(&model)?)?);
    Ok(())
}

/// The network called `name`.
pub(crate) async fn find(client: &mut ModelServiceClient<Channel>, name: &str) -> anyhow::Result<Model> {
    let request = GetModelRequest { name: name.to_owned() };
    let answer = client.get_model(request).await.map_err(|status| explain(&status));
    Ok(answer.with_context(|| format!("no network {name:?}"))?.into_inner())
}

pub(crate) fn short_id(id: &[u8]) -> String {
    hex::encode(id).chars().take(16).collect()
}

pub(crate) fn state_name(state: ModelState) -> &'static str {
    match state {
        ModelState::Unspecified => "unknown",
        ModelState::Candidate => "candidate",
        ModelState::Gating => "gating",
        ModelState::Champion => "champion",
        ModelState::FormerChampion => "former champion",
        ModelState::Rejected => "rejected",
        ModelState::Superseded => "superseded",
        ModelState::Held => "held",
    }
}
