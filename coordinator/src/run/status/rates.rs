//! How much came in the last minute, counted by second.

use std::collections::VecDeque;

/// Over how long rates are taken, milliseconds.
const RATE_MS: u64 = 60_000;
/// Rates are counted in slots of this length, milliseconds.
const SLOT_MS: u64 = 1_000;

/// Games and positions stored in the last minute, by second.
#[derive(Clone, Debug, Default)]
pub(in crate::run) struct Rate {
    slots: VecDeque<Slot>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    number: u64,
    games: u32,
    positions: u64,
}

/// What came in a minute.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::run) struct PerMinute {
    pub(in crate::run) games: f32,
    pub(in crate::run) positions: f32,
}

impl Rate {
    /// Notes a game with so many trainable positions.
    pub(in crate::run) fn note(&mut self, now_ms: u64, positions: u32) {
        let number = now_ms / SLOT_MS;
        if self.slots.back().is_none_or(|last| last.number != number) {
            self.slots.push_back(Slot {
                number,
                games: 0,
                positions: 0,
            });
        }
        if let Some(slot) = self.slots.back_mut() {
            slot.games += 1;
            slot.positions += u64::from(positions);
        }
        self.forget(now_ms);
    }

    /// The rates over the last minute, or over the time since the process began when that is shorter.
    pub(in crate::run) fn per_minute(&mut self, now_ms: u64) -> PerMinute {
        self.forget(now_ms);
        let games: u32 = self.slots.iter().map(|slot| slot.games).sum();
        let positions: u64 = self.slots.iter().map(|slot| slot.positions).sum();
        let factor = 60_000.0 / now_ms.clamp(SLOT_MS, RATE_MS) as f32;
        PerMinute {
            games: games as f32 * factor,
            positions: positions as f32 * factor,
        }
    }

    fn forget(&mut self, now_ms: u64) {
        let oldest = now_ms.saturating_sub(RATE_MS) / SLOT_MS;
        while self.slots.front().is_some_and(|slot| slot.number < oldest) {
            self.slots.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_forgets_what_is_older_than_a_minute() {
        let mut rate = Rate::default();
        for second in 0..120 {
            rate.note(second * 1_000, 10);
        }
        let now = rate.per_minute(119_500);
        assert!((now.games - 61.0).abs() <= 1.0, "{now:?}");
        assert!((now.positions - 610.0).abs() <= 10.0, "{now:?}");
        assert_eq!(rate.per_minute(500_000), PerMinute::default());
        rate = Rate::default();
        rate.note(100, 7);
        assert_eq!(
            rate.per_minute(30_000),
            PerMinute {
                games: 2.0,
                positions: 14.0
            }
        );
    }
}
