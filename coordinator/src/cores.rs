//! Machines with too few cores for what the run computes there: who waits for one, and who shares them.

use std::collections::BTreeMap;

use tengen_proto::v1;
use tengen_service::usage::wait_share;

/// Who waits for less of the time than this is not said to wait.
const WAIT_SHARE_MIN: f32 = 0.25;
/// Nor are those who lack fewer cores than this: then much waiting only means that there is little to compute.
const LACKING_MIN: f32 = 0.25;

/// Processes of one kind on one machine, taken together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Party {
    processes: usize,
    /// The sum of what they told.
    usage: v1::Usage,
}

impl Party {
    fn add(&mut self, told: Option<&v1::Usage>) {
        self.processes += 1;
        let Some(told) = told else { return };
        let sum = &mut self.usage;
        sum.cpu_cores += told.cpu_cores;
        // All of them see the same machine.
        sum.cpu_cores_available = sum.cpu_cores_available.max(told.cpu_cores_available);
        *sum.cpu_cores_lacking.get_or_insert(0.0) += told.cpu_cores_lacking.unwrap_or(0.0);
    }

    /// For which share of the time they wait for a core, where that is worth saying.
    fn wait(&self) -> Option<f32> {
        let lacking = self.usage.cpu_cores_lacking?;
        let share = wait_share(&self.usage)?;
        (share >= WAIT_SHARE_MIN && lacking >= LACKING_MIN).then_some(share)
    }

    /// `None` where there are no processes.
    fn evidence(&self, who: &str) -> Option<String> {
        let lacking = self.usage.cpu_cores_lacking.unwrap_or(0.0);
        (self.processes > 0).then(|| {
            format!(
                "{who} kept {:.1} cores busy and had work for {lacking:.1} more",
                self.usage.cpu_cores
            )
        })
    }
}

/// A machine on which somebody waits.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Crowd {
    host: String,
    learner: Party,
    actors: Party,
}

/// The machines on which those who are heard wait for a core, the worst first.
pub(crate) fn crowds(actors: &[v1::ActorStatus], learner: Option<&v1::LearnerStatus>) -> Vec<Crowd> {
    let mut machines: BTreeMap<&str, Crowd> = BTreeMap::new();
    if let Some(learner) = learner.filter(|learner| learner.alive) {
        let machine = machines.entry(&learner.host).or_default();
        machine.learner.add(learner.usage.as_ref());
    }
    for actor in actors.iter().filter(|actor| actor.alive) {
        let machine = machines.entry(&actor.host).or_default();
        machine.actors.add(actor.usage.as_ref());
    }
    let named = machines.into_iter().map(|(host, machine)| Crowd {
        host: host.to_owned(),
        ..machine
    });
    let mut crowds: Vec<Crowd> = named.filter(|machine| machine.longest_wait() > 0.0).collect();
    crowds.sort_by(|one, other| other.longest_wait().total_cmp(&one.longest_wait()));
    crowds
}

/// What the status says of the worst of these machines, and of how many there are; `None` where there is none.
pub(crate) fn in_short(crowds: &[Crowd]) -> Option<String> {
    let worst = crowds.first()?;
    let mut text = worst.sentence();
    if worst.is_shared() {
        text.push_str(" ([cpu] learner_threads and actor_threads divide them)");
    }
    let others = crowds.len() - 1;
    if others > 0 {
        text.push_str(&format!(
            ", and cores are lacking on {}, too",
            counted(others, "other machine")
        ));
    }
    Some(text)
}

impl Crowd {
    /// Who waits, and with whom the cores are shared.
    pub(crate) fn sentence(&self) -> String {
        let waits = |who: &str, share: f32| format!("{who} for one {:.0} % of the time", 100.0 * share);
        let actors = match self.actors.processes {
            1 => "the actor waits",
            _ => "the actors wait",
        };
        let learner = self.learner.wait().map(|share| waits("the learner waits", share));
        let actors = self.actors.wait().map(|share| waits(actors, share));
        let who: Vec<String> = learner.into_iter().chain(actors).collect();
        format!(
            "{} has {}, too few for {}: {}",
            self.host,
            counted(self.cores(), "CPU core"),
            self.sharers(),
            who.join(", ")
        )
    }

    /// What says so.
    pub(crate) fn evidence(&self) -> Vec<String> {
        let learner = self.learner.evidence("the learner");
        let actors = self.actors.evidence(&counted(self.actors.processes, "actor"));
        learner.into_iter().chain(actors).collect()
    }

    /// What helps.
    pub(crate) fn remedy(&self) -> String {
        if self.is_shared() {
            "lower [cpu] learner_threads and actor_threads until together they are no more than the cores, or let actors \
             play on another machine: tengen-actor --join URL --data DIR"
                .to_owned()
        } else {
            "give it no more threads than there are cores (--threads), or stop what else computes there".to_owned()
        }
    }

    /// Whether a learner and actors compute there.
    fn is_shared(&self) -> bool {
        self.learner.processes > 0 && self.actors.processes > 0
    }

    fn sharers(&self) -> String {
        let actors = counted(self.actors.processes, "actor");
        match (self.learner.processes, self.actors.processes) {
            (0, _) => format!("{actors} and what else computes there"),
            (_, 0) => "the learner and what else computes there".to_owned(),
            _ => format!("the learner and {actors}"),
        }
    }

    fn cores(&self) -> usize {
        let [learner, actors] = [self.learner, self.actors].map(|party| party.usage.cpu_cores_available);
        learner.max(actors) as usize
    }

    /// 0 where nobody waits.
    fn longest_wait(&self) -> f32 {
        let waits = [self.learner.wait(), self.actors.wait()];
        waits.into_iter().flatten().fold(0.0, f32::max)
    }
}

/// `1 actor`, `2 actors`.
fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(busy: f32, lacking: f32) -> Option<v1::Usage> {
        Some(v1::Usage {
            cpu_cores: busy,
            cpu_cores_available: 2,
            cpu_cores_lacking: Some(lacking),
            ..v1::Usage::default()
        })
    }

    fn actor(host: &str, usage: Option<v1::Usage>) -> v1::ActorStatus {
        v1::ActorStatus {
            host: host.to_owned(),
            alive: true,
            usage,
            ..v1::ActorStatus::default()
        }
    }

    fn learner(host: &str, usage: Option<v1::Usage>) -> v1::LearnerStatus {
        v1::LearnerStatus {
            host: host.to_owned(),
            alive: true,
            usage,
            ..v1::LearnerStatus::default()
        }
    }

    fn check(actors: &[v1::ActorStatus], learner: &v1::LearnerStatus, expected: &[&str]) {
        let crowds = crowds(actors, Some(learner));
        let sentences: Vec<String> = crowds.iter().map(Crowd::sentence).collect();
        assert_eq!(sentences, expected);
    }

    #[test]
    fn a_machine_that_learner_and_actors_share_tells_of_both() {
        let trains = learner("box", usage(0.6, 0.4));
        let plays = [actor("box", usage(0.7, 0.3)), actor("box", usage(0.5, 0.5))];
        check(
            &plays,
            &trains,
            &["box has 2 CPU cores, too few for the learner and 2 actors: \
               the learner waits for one 40 % of the time, the actors wait for one 40 % of the time"],
        );
        // Who waits little is counted among those who share.
        let hardly = [actor("box", usage(1.0, 0.1))];
        check(
            &hardly,
            &trains,
            &["box has 2 CPU cores, too few for the learner and 1 actor: the learner waits for one 40 % of the time"],
        );
    }

    #[test]
    fn machines_are_told_of_apart_the_worst_first() {
        let trains = learner("box", usage(0.7, 0.3));
        let plays = [actor("box", usage(1.0, 0.0)), actor("den", usage(1.0, 3.0))];
        let crowds = crowds(&plays, Some(&trains));
        let hosts: Vec<&str> = crowds.iter().map(|crowd| crowd.host.as_str()).collect();
        assert_eq!(hosts, ["den", "box"]);
        let short = in_short(&crowds).unwrap();
        assert_eq!(
            short,
            "den has 2 CPU cores, too few for 1 actor and what else computes there: \
             the actor waits for one 75 % of the time, and cores are lacking on 1 other machine, too"
        );
        assert!(!crowds[0].remedy().contains("learner_threads") && crowds[1].remedy().contains("learner_threads"));
        assert!(
            in_short(&crowds[1..])
                .unwrap()
                .contains("[cpu] learner_threads and actor_threads")
        );
        assert_eq!(
            crowds[1].evidence(),
            [
                "the learner kept 0.7 cores busy and had work for 0.3 more",
                "1 actor kept 1.0 cores busy and had work for 0.0 more"
            ]
        );
    }

    #[test]
    fn who_has_little_to_compute_tells_nothing_or_is_silent_is_not_said_to_wait() {
        let untold = Some(v1::Usage {
            cpu_cores: 2.0,
            ..v1::Usage::default()
        });
        let silent = v1::ActorStatus {
            alive: false,
            ..actor("box", usage(0.5, 0.5))
        };
        for idle in [
            actor("box", usage(0.2, 0.2)),
            actor("box", usage(1.0, 0.3)),
            actor("box", untold),
            actor("box", None),
            silent,
        ] {
            check(&[idle], &learner("box", usage(2.0, 0.0)), &[]);
        }
        assert_eq!(in_short(&[]), None);
    }
}
