//! Turns SIGTERM, SIGINT and the death of a parent into one token that every component watches.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::args::ProcessArgs;

/// The token of a server process: signals, and with `--exit-with-parent` the end of standard input.
pub fn watch(args: &ProcessArgs) -> std::io::Result<CancellationToken> {
    let token = on_signals()?;
    if args.exit_with_parent {
        let cancelled = token.clone();
        std::thread::Builder::new()
            .name("parent-watch".to_owned())
            .spawn(move || {
                // Nothing is ever written to the pipe: the copy ends when its other end is closed, by whatever death.
                let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
                cancelled.cancel();
            })?;
    }
    Ok(token)
}

/// A token that is cancelled at the first SIGTERM or SIGINT. A second signal ends the process at once with status 130:
/// whoever asks twice does not want to wait for the drain.
pub fn on_signals() -> std::io::Result<CancellationToken> {
    let token = CancellationToken::new();
    let cancelled = token.clone();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        wait(&mut terminate, &mut interrupt).await;
        tracing::info!("draining: send the signal again to stop at once");
        cancelled.cancel();
        wait(&mut terminate, &mut interrupt).await;
        tracing::warn!(fatal = true, exit_code = 130, "stopped without draining");
        std::process::exit(130);
    });
    Ok(token)
}

async fn wait(terminate: &mut tokio::signal::unix::Signal, interrupt: &mut tokio::signal::unix::Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
