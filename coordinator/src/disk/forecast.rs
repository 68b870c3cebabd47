//! How fast the data grows and when the room ends: arithmetic on samples, without a clock or a disk.

use std::collections::VecDeque;

/// Over how long growth is taken, milliseconds.
const OVER_MS: u64 = 3_600_000;
/// Samples closer together than this make one, milliseconds: bounds how many are kept.
const APART_MS: u64 = 30_000;
/// Shortest time that says anything about growth, milliseconds.
const SHORTEST_MS: u64 = 60_000;

/// The size of the data in the last hour.
#[derive(Clone, Debug, Default)]
pub(crate) struct Growth {
    samples: VecDeque<(u64, u64)>,
}

impl Growth {
    /// Notes the size at a time of an ever-growing clock, milliseconds.
    pub(crate) fn note(&mut self, now_ms: u64, data_bytes: u64) {
        let close = |last: &(u64, u64)| now_ms.saturating_sub(last.0) < APART_MS;
        // The first sample stays where it is: the newest ones move until they are far enough apart.
        if self.samples.len() > 1 && self.samples.iter().nth_back(1).is_some_and(close) {
            self.samples.pop_back();
        }
        self.samples.push_back((now_ms, data_bytes));
        while self
            .samples
            .get(1)
            .is_some_and(|second| now_ms.saturating_sub(second.0) >= OVER_MS)
        {
            self.samples.pop_front();
        }
    }

    /// Growth in bytes per hour, negative when the data shrank; `None` before there is enough to go by.
    pub(crate) fn bytes_per_hour(&self) -> Option<f64> {
        let (first, last) = (self.samples.front()?, self.samples.back()?);
        let over_ms = last.0.saturating_sub(first.0);
        if over_ms < SHORTEST_MS {
            return None;
        }
        Some((last.1 as f64 - first.1 as f64) * OVER_MS as f64 / over_ms as f64)
    }
}

/// Bytes that can still be written before new games are refused: what the disk has above its low-water mark, or what the
/// data folder may still take, whichever is less.
pub(crate) fn room(free_bytes: u64, free_bytes_min: u64, data_bytes: u64, data_bytes_max: u64) -> u64 {
    let disk = free_bytes.saturating_sub(free_bytes_min);
    match data_bytes_max {
        0 => disk,
        limit => disk.min(limit.saturating_sub(data_bytes)),
    }
}

/// Hours until the room is used up; `None` when the data does not grow.
pub(crate) fn hours_left(room_bytes: u64, bytes_per_hour: Option<f64>) -> Option<f64> {
    bytes_per_hour
        .filter(|rate| *rate > 0.0)
        .map(|rate| room_bytes as f64 / rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_that_of_the_last_hour() {
        let mut growth = Growth::default();
        growth.note(0, 1_000);
        assert_eq!(growth.bytes_per_hour(), None);
        // 100 bytes a minute for two hours, then nothing for half an hour.
        for minute in 1..=120 {
            growth.note(minute * 60_000, 1_000 + minute * 100);
        }
        let rate = growth.bytes_per_hour().unwrap();
        assert!((rate - 6_000.0).abs() < 1.0, "{rate}");
        for minute in 121..=150 {
            growth.note(minute * 60_000, 13_000);
        }
        let rate = growth.bytes_per_hour().unwrap();
        assert!((rate - 3_000.0).abs() < 101.0, "{rate}");
    }

    #[test]
    fn many_samples_are_kept_as_few_and_the_first_minute_counts() {
        let mut growth = Growth::default();
        for second in 0..20_000 {
            growth.note(second * 1_000, second);
            assert!(growth.samples.len() <= 130, "{} samples", growth.samples.len());
        }
        let rate = growth.bytes_per_hour().unwrap();
        assert!((rate - 3_600.0).abs() < 1.0, "{rate}");
    }

    #[test]
    fn the_nearer_limit_says_when_the_room_ends() {
        assert_eq!(room(100, 40, 10, 0), 60);
        assert_eq!(room(100, 40, 10, 30), 20);
        assert_eq!(room(30, 40, 10, 0), 0);
        assert_eq!(room(100, 40, 31, 30), 0);
        assert_eq!(hours_left(60, Some(20.0)), Some(3.0));
        assert_eq!(hours_left(60, Some(-20.0)), None);
        assert_eq!(hours_left(60, None), None);
    }
}
