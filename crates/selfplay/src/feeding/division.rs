//! The numbers: how many threads, sessions, games and positions in a batch, from what is wanted and from the devices.

use tengen_inference::{Device, Devices};

/// Games at once at most, however many threads there are.
const GAMES_MAX: usize = 65_536;

/// Who has sessions of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionsPer {
    /// Each thread, as on a CPU: nobody waits for anybody.
    Thread,
    /// Each device, as on a GPU: its threads take turns, and a network is in its memory once.
    Device,
}

/// What somebody wants. What is left out follows from the devices.
#[derive(Clone, Copy, Debug)]
pub struct Wishes {
    /// Games at once, over all threads.
    pub games: Option<usize>,
    /// Positions in one evaluation at most.
    pub batch_max: Option<usize>,
    /// Threads, where each has sessions of its own.
    pub threads: Option<usize>,
    /// Threads for each device, where they share its sessions.
    pub threads_per_device: usize,
    /// Who has sessions of its own.
    pub sessions_per: Option<SessionsPer>,
    /// Memory for answers that are asked for again, MiB over all threads; 0 keeps none.
    pub cache_mib: Option<usize>,
}

/// Positions in one evaluation at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batch {
    /// So many: somebody said so.
    Told(usize),
    /// As many as prove fast enough, up to so many.
    UpTo(usize),
}

impl Batch {
    /// Most positions in one evaluation that it may come to.
    pub fn max(self) -> usize {
        match self {
            Batch::Told(positions) | Batch::UpTo(positions) => positions,
        }
    }
}

/// What a kind of device is fed with.
struct Habit {
    sessions_per: SessionsPer,
    batch_max: usize,
    /// Batches that the games of one thread would fill.
    batches: usize,
    /// Memory for kept answers for each device, MiB.
    cache_mib: usize,
}

/// A core: many small batches over many trees. `selfplay_caro5_4x64_fp32` in docs/benchmarks.md is measured with these, and
/// `selfplay_cache_and_tree_reuse` with as much memory for answers.
const CPU: Habit = Habit {
    sessions_per: SessionsPer::Thread,
    batch_max: 16,
    batches: 2,
    cache_mib: 64,
};

/// A GPU: each of its threads has the games for one large batch. All games ask in turn, so the more there are, the more answers
/// come between two questions of one game; 512 have the room for each that 128 have on a CPU. Not measured on a GPU.
const GPU: Habit = Habit {
    sessions_per: SessionsPer::Device,
    batch_max: 256,
    batches: 1,
    cache_mib: 256,
};

/// How play is divided over devices. Threads are numbered from 0, and go round the devices in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Division {
    devices: Devices,
    sessions_per: SessionsPer,
    threads: usize,
    games: usize,
    batch: Batch,
    cache_mib: usize,
}

impl Division {
    /// Divides play over `devices`, which are [found](super::find) ones, on a machine of `cores`. There is at least one
    /// thread and one game, and no thread without a game.
    pub fn new(devices: &Devices, wishes: &Wishes, cores: usize) -> Division {
        let count = devices.as_slice().len();
        let habit = match devices.as_slice() {
            [Device::Cpu | Device::OpenVino] => CPU,
            _ => GPU,
        };
        let sessions_per = wishes.sessions_per.unwrap_or(habit.sessions_per);
        let threads = match sessions_per {
            SessionsPer::Thread => wishes.threads.unwrap_or(cores),
            SessionsPer::Device => count * wishes.threads_per_device,
        };
        let threads = threads.max(1);
        let batch_max = wishes.batch_max.unwrap_or(habit.batch_max).max(1);
        let games = wishes
            .games
            .unwrap_or_else(|| (threads * batch_max * habit.batches).min(GAMES_MAX))
            .max(1);
        let threads = threads.min(games);
        Division {
            devices: devices.clone(),
            sessions_per,
            threads,
            games,
            batch: match wishes.batch_max {
                Some(_) => Batch::Told(batch_max),
                // A thread never has more positions at once than games.
                None => Batch::UpTo(batch_max.min(games.div_ceil(threads))),
            },
            cache_mib: wishes.cache_mib.unwrap_or(count * habit.cache_mib),
        }
    }

    /// The devices.
    pub fn devices(&self) -> &Devices {
        &self.devices
    }

    /// Who has sessions of its own.
    pub fn sessions_per(&self) -> SessionsPer {
        self.sessions_per
    }

    /// Threads that play, over all devices.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Sessions of one network, over all devices.
    pub fn sessions(&self) -> usize {
        match self.sessions_per {
            SessionsPer::Thread => self.threads,
            SessionsPer::Device => self.threads.min(self.devices.as_slice().len()),
        }
    }

    /// Sessions of one network on one of the devices, by its index.
    pub fn sessions_on(&self, place: usize) -> usize {
        let threads = (0..self.threads).filter(|&thread| self.place_of(thread) == place);
        match self.sessions_per {
            SessionsPer::Thread => threads.count(),
            SessionsPer::Device => threads.count().min(1),
        }
    }

    /// Games at once, over all threads.
    pub fn games(&self) -> usize {
        self.games
    }

    /// Positions in one evaluation.
    pub fn batch(&self) -> Batch {
        self.batch
    }

    /// Memory for answers that are asked for again, over all threads.
    pub fn cache_bytes(&self) -> usize {
        self.cache_mib << 20
    }

    /// Most positions that a thread can have ready for one evaluation.
    pub fn batch_filled(&self) -> usize {
        self.batch.max().min(self.games_of(0))
    }

    /// The games of one thread: an even share.
    pub fn games_of(&self, thread: usize) -> usize {
        self.games / self.threads + usize::from(thread < self.games % self.threads)
    }

    /// Which of the devices a thread feeds, by index.
    pub fn place_of(&self, thread: usize) -> usize {
        thread % self.devices.as_slice().len()
    }

    /// The device that a thread feeds.
    pub fn device_of(&self, thread: usize) -> Device {
        self.devices.as_slice()[self.place_of(thread)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Wishes = Wishes {
        games: None,
        batch_max: None,
        threads: None,
        threads_per_device: 2,
        sessions_per: None,
        cache_mib: None,
    };

    fn division(devices: &str, wishes: Wishes) -> Division {
        Division::new(&devices.parse().expect("devices"), &wishes, 4)
    }

    #[test]
    fn each_core_of_a_cpu_has_a_session_and_the_games_for_two_small_batches() {
        let cpu = division("cpu", NOTHING);
        assert_eq!((cpu.threads(), cpu.sessions(), cpu.sessions_on(0)), (4, 4, 4));
        assert_eq!((cpu.games(), cpu.batch()), (128, Batch::UpTo(16)));
        assert!((0..4).all(|thread| cpu.games_of(thread) == 32 && cpu.device_of(thread) == Device::Cpu));

        let openvino = division("openvino", NOTHING);
        assert_eq!((openvino.threads(), openvino.sessions()), (4, 4));
        assert_eq!((openvino.games(), openvino.batch()), (128, Batch::UpTo(16)));
        assert_eq!(openvino.device_of(3), Device::OpenVino);
    }

    #[test]
    fn each_gpu_has_one_session_and_two_threads_with_the_games_for_one_large_batch() {
        let gpu = division("cuda:3", NOTHING);
        assert_eq!((gpu.threads(), gpu.sessions(), gpu.games()), (2, 1, 512));
        assert_eq!((gpu.batch(), gpu.batch_filled()), (Batch::UpTo(256), 256));
        let two = division("cuda:1,cuda:0", NOTHING);
        assert_eq!((two.threads(), two.sessions(), two.games()), (4, 2, 1_024));
        assert_eq!([two.sessions_on(0), two.sessions_on(1)], [1, 1]);
        assert_eq!(
            [0, 1, 2, 3].map(|thread| two.device_of(thread)),
            [1, 0, 1, 0].map(Device::Cuda)
        );
        let tensorrt = division("tensorrt:3", NOTHING);
        assert_eq!((tensorrt.threads(), tensorrt.sessions(), tensorrt.games()), (2, 1, 512));
        // Threads of the CPU are no threads of a GPU.
        let threads = Some(16);
        assert_eq!(division("cuda:0", Wishes { threads, ..NOTHING }).threads(), 2);
    }

    #[test]
    fn there_is_more_room_for_answers_where_more_games_ask() {
        for (devices, mib) in [("cpu", 64), ("openvino", 64), ("cuda:0", 256), ("cuda:0,cuda:1", 512)] {
            assert_eq!(division(devices, NOTHING).cache_bytes(), mib << 20, "{devices}");
            let cache_mib = Some(3);
            assert_eq!(
                division(devices, Wishes { cache_mib, ..NOTHING }).cache_bytes(),
                3 << 20
            );
        }
    }

    #[test]
    fn what_is_wanted_is_taken_as_it_is() {
        let wishes = Wishes {
            games: Some(65),
            batch_max: Some(64),
            threads: Some(2),
            ..NOTHING
        };
        let cpu = division("cpu", wishes);
        assert_eq!((cpu.threads(), cpu.games(), cpu.batch()), (2, 65, Batch::Told(64)));
        assert_eq!([cpu.games_of(0), cpu.games_of(1), cpu.batch_filled()], [33, 32, 33]);
        let gpu = division("cuda:0", wishes);
        assert_eq!((gpu.threads(), gpu.games(), gpu.batch()), (2, 65, Batch::Told(64)));
        let batch_max = Some(32);
        assert_eq!(division("cuda:0", Wishes { batch_max, ..NOTHING }).games(), 64);
        let shared = Wishes {
            threads_per_device: 3,
            sessions_per: Some(SessionsPer::Device),
            ..NOTHING
        };
        let cpu = division("cpu", shared);
        assert_eq!((cpu.threads(), cpu.sessions(), cpu.games()), (3, 1, 96));
    }

    #[test]
    fn no_thread_is_without_a_game_and_no_batch_larger_than_its_games() {
        let few = |devices: &str, games: usize| {
            let games = Some(games);
            let division = division(devices, Wishes { games, ..NOTHING });
            let shares: Vec<usize> = (0..division.threads())
                .map(|thread| division.games_of(thread))
                .collect();
            assert_eq!(shares.iter().sum::<usize>(), division.games());
            assert!(shares.iter().all(|&games| games >= 1), "{shares:?}");
            (division.threads(), division.sessions(), division.batch())
        };
        assert_eq!(few("cpu", 3), (3, 3, Batch::UpTo(1)));
        assert_eq!(few("cpu", 10), (4, 4, Batch::UpTo(3)));
        assert_eq!(few("cuda:0,cuda:1,cuda:2", 2), (2, 2, Batch::UpTo(1)));
        assert_eq!(few("cuda:0", 100), (2, 1, Batch::UpTo(50)));
        let none = Wishes {
            games: Some(0),
            batch_max: Some(0),
            threads: Some(0),
            threads_per_device: 0,
            sessions_per: None,
            cache_mib: Some(0),
        };
        for devices in ["cpu", "cuda:0"] {
            let least = division(devices, none);
            assert_eq!((least.threads(), least.games(), least.batch()), (1, 1, Batch::Told(1)));
            assert_eq!(least.cache_bytes(), 0);
        }
        let threads = Some(1_024);
        let batch_max = Some(4_096);
        let wishes = Wishes {
            threads,
            batch_max,
            ..NOTHING
        };
        assert_eq!(division("cpu", wishes).games(), GAMES_MAX);
    }
}
