//! How each process of a local cluster is started: its folder, its arguments, its share of the cores.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;
use tengen_inference::Devices;
use tengen_service::args::LogArgs;
use tengen_service::credentials::{ConnectArgs, Credentials};
use tengen_service::run_config::{ActorSection, RunConfig};

use super::UpArgs;
use super::child::ChildSpec;
use super::settings::Settings;
use crate::client::ADDRESS_FILE;
use crate::programs;

/// Where everything of one local cluster lives and how each process is started.
pub(crate) struct Layout {
    pub(crate) data: PathBuf,
    run: PathBuf,
    pub(crate) listen: SocketAddr,
    log: LogArgs,
    coordinator_config: Option<PathBuf>,
    pub(crate) apply: bool,
    settings: Settings,
    pub(crate) connect: ConnectArgs,
    pub(crate) credentials: Credentials,
    play: ActorSection,
    device: Devices,
    learner_device: String,
    learner_threads: u32,
    actor_threads: Vec<u32>,
    /// Port of the first process's metrics.
    metrics: Option<u16>,
}

impl Layout {
    pub(crate) fn new(args: &UpArgs, config: &RunConfig, data: PathBuf, log: &LogArgs) -> anyhow::Result<Layout> {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        let (learner_threads, actor_threads) = config.cpu.divide(cores);
        let settings = Settings::load(args.coordinator_config.as_deref())?;
        settings.check_tls(&args.connect)?;
        let share = |index: u32| (actor_threads / args.actors + u32::from(index < actor_threads % args.actors)).max(1);
        Ok(Layout {
            data,
            run: args.run.clone(),
            listen: args.listen,
            log: log.clone(),
            coordinator_config: args.coordinator_config.clone(),
            apply: args.apply,
            settings,
            connect: args.connect.clone(),
            credentials: args.connect.credentials()?,
            play: config.actor.clone(),
            device: config.actor.device.parse().context("actor.device")?,
            learner_device: config.learner.device.clone(),
            learner_threads,
            actor_threads: (0..args.actors).map(share).collect(),
            metrics: args.metrics,
        })
    }

    fn spec(&self, part: String, program: &str, args: Vec<OsString>) -> anyhow::Result<ChildSpec> {
        let mut all = args;
        all.extend(self.log.to_arguments());
        all.push("--exit-with-parent".into());
        Ok(ChildSpec {
            log: self.data.join("logs").join(format!("{part}.log")),
            part,
            program: programs::find(program)?,
            args: all,
            variables: Vec::new(),
        })
    }

    /// How the process that comes `place`-th shows its metrics.
    fn metrics(&self, part: &str, place: usize) -> Vec<OsString> {
        let Some(first) = self.metrics else {
            return Vec::new();
        };
        let port = match first {
            0 => 0,
            // Beyond the last port the process says that it cannot listen.
            first => usize::from(first) + place,
        };
        let file = self.data.join("metrics").join(format!("{part}.addr"));
        vec![
            "--metrics".into(),
            format!("127.0.0.1:{port}").into(),
            "--metrics-addr-file".into(),
            file.into(),
        ]
    }

    pub(crate) fn coordinator(&self, listen: SocketAddr) -> anyhow::Result<ChildSpec> {
        let mut args: Vec<OsString> = vec![
            "--run".into(),
            self.run.clone().into(),
            "--data".into(),
            self.data.clone().into(),
            "--listen".into(),
            listen.to_string().into(),
            "--addr-file".into(),
            self.data.join(ADDRESS_FILE).into(),
        ];
        if let Some(config) = &self.coordinator_config {
            args.extend(["--config".into(), config.clone().into()]);
        }
        args.extend(self.metrics("coordinator", 0));
        self.spec("coordinator".to_owned(), "tengen-coordinator", args)
    }

    pub(crate) fn learner(&self, url: &str) -> anyhow::Result<ChildSpec> {
        let mut args: Vec<OsString> = vec![
            "--coordinator".into(),
            url.into(),
            "--data".into(),
            self.data.join("learner").into(),
            "--device".into(),
            self.learner_device.clone().into(),
            "--threads".into(),
            self.learner_threads.to_string().into(),
        ];
        args.extend(self.connect.to_arguments());
        args.extend(self.metrics("learner", 1));
        Ok(ChildSpec {
            variables: self.settings.learner_variables(),
            ..self.spec("learner".to_owned(), "tengen-learner", args)?
        })
    }

    pub(crate) fn actor(&self, url: &str, index: usize) -> anyhow::Result<ChildSpec> {
        let part = format!("actor-{index}");
        let mut args: Vec<OsString> = vec![
            "--join".into(),
            url.into(),
            "--data".into(),
            self.data.join(&part).into(),
            "--threads".into(),
            self.actor_threads[index].to_string().into(),
            "--threads-per-device".into(),
            self.play.threads_per_device.to_string().into(),
            "--device".into(),
            self.device.to_string().into(),
            "--precision".into(),
            self.play.precision.as_str().into(),
        ];
        // What is not told is for the actor to choose.
        let unless_0 = |number: u32| (number > 0).then_some(number);
        for (option, told) in [
            ("--games", unless_0(self.play.games)),
            ("--batch-max", unless_0(self.play.batch_max)),
            ("--cache-mib", self.play.cache_mib),
        ] {
            if let Some(value) = told {
                args.extend([option.into(), value.to_string().into()]);
            }
        }
        args.extend(self.connect.to_arguments());
        args.extend(self.metrics(&part, 2 + index));
        self.spec(part, "tengen-actor", args)
    }
}
