//! Names of the keys. All of a run's keys share one hash tag, so that they lie on one node of a cluster and one function
//! may touch them together.

/// The keys of one run.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    pointer: String,
}

impl Keys {
    pub(super) fn of(run: &str) -> Keys {
        Keys {
            pointer: format!("{{{run}}}:window"),
        }
    }

    /// The hash that says which stream is the window.
    pub(super) fn pointer(&self) -> &str {
        &self.pointer
    }

    /// The stream of one epoch.
    pub(super) fn stream(&self, epoch: u64) -> String {
        format!("{}:{epoch}", self.pointer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_keys_of_a_run_share_one_hash_tag() {
        let keys = Keys::of("small-1");
        assert_eq!(keys.pointer(), "{small-1}:window");
        assert_eq!(keys.stream(7), "{small-1}:window:7");
    }
}
