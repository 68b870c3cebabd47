//! The terminal of the full-screen view: taken for as long as the view is shown and given back whatever happens.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tengen_proto::v1::RunStatus;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::follow::News;
use super::view::View;

/// How often the keyboard's thread looks whether it is still wanted.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Keys that may wait.
const KEYS_MAX: usize = 16;

/// Shows the view until a key or a signal ends it.
pub(super) async fn run(
    first: RunStatus,
    mut news: mpsc::Receiver<News>,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let mut view = View::new(first);
    let mut screen = Screen::take()?;
    let (sender, inputs) = mpsc::channel(KEYS_MAX);
    let _keyboard = Keyboard::listen(sender)?;
    // Declared last, so that it goes first: the keyboard's thread then waits for nobody.
    let mut inputs = inputs;
    loop {
        screen.terminal.draw(|frame| view.draw(frame))?;
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            input = inputs.recv() => match input {
                Some(Input::Redraw) => {}
                Some(Input::Quit) | None => return Ok(()),
            },
            word = news.recv() => match word {
                Some(News::Status(status)) => view.take(*status),
                Some(News::Lost(reason)) => view.lose(reason),
                Some(News::Refused(error)) => return Err(error),
                None => return Ok(()),
            },
        }
    }
}

/// The terminal, which is given back when this is dropped, and by ratatui's own hook when a thread panics.
struct Screen {
    terminal: DefaultTerminal,
}

impl Screen {
    fn take() -> io::Result<Screen> {
        Ok(Screen {
            terminal: ratatui::try_init()?,
        })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone needs no giving back.
        let _ = ratatui::try_restore();
    }
}

/// What the keyboard and the terminal say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    Quit,
    /// The terminal's size has changed.
    Redraw,
}

/// The thread that reads the keyboard; it ends when this is dropped.
struct Keyboard {
    wanted: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Keyboard {
    fn listen(inputs: mpsc::Sender<Input>) -> io::Result<Keyboard> {
        let wanted = Arc::new(AtomicBool::new(true));
        let look = Arc::clone(&wanted);
        let thread = std::thread::Builder::new().name("keyboard".to_owned()).spawn(move || {
            while look.load(Ordering::Relaxed) {
                let input = match event::poll(LOOK_EVERY) {
                    Ok(false) => continue,
                    Ok(true) => event::read().ok().and_then(|event| meaning(&event)),
                    // A terminal that is gone shows nothing any more.
                    Err(_) => Some(Input::Quit),
                };
                if input.is_some_and(|input| inputs.blocking_send(input).is_err() || input == Input::Quit) {
                    return;
                }
            }
        })?;
        Ok(Keyboard {
            wanted,
            thread: Some(thread),
        })
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.wanted.store(false, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It only reads keys: a panic of it has been told by the hook.
            let _ = thread.join();
        }
    }
}

fn meaning(event: &Event) -> Option<Input> {
    match event {
        Event::Resize(..) => Some(Input::Redraw),
        Event::Key(KeyEvent {
            code,
            modifiers,
            kind: KeyEventKind::Press,
            ..
        }) => {
            let control = modifiers.contains(KeyModifiers::CONTROL);
            match code {
                KeyCode::Char('q') | KeyCode::Esc => Some(Input::Quit),
                KeyCode::Char('c') if control => Some(Input::Quit),
                KeyCode::Char('l') if control => Some(Input::Redraw),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q_escape_and_control_c_quit_and_nothing_else_does() {
        let key = |code, modifiers| meaning(&Event::Key(KeyEvent::new(code, modifiers)));
        assert_eq!(key(KeyCode::Char('q'), KeyModifiers::NONE), Some(Input::Quit));
        assert_eq!(key(KeyCode::Esc, KeyModifiers::NONE), Some(Input::Quit));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Input::Quit));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::NONE), None);
        assert_eq!(key(KeyCode::Enter, KeyModifiers::NONE), None);
        assert_eq!(meaning(&Event::Resize(80, 24)), Some(Input::Redraw));
    }
}
