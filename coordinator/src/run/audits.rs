//! Findings of audits: counted, and held against actors whose games fail.

use rusqlite::Connection;
use tengen_selfplay::audit::Difference;

use super::owner::Now;
use super::request::AuditReport;
use super::state::State;
use crate::audit::Place;
use crate::store::audits::{self, AuditCount, AuditFailure};
use crate::store::trail::{self, Entry};
use crate::store::{StoreError, actors};

impl State {
    /// Counts an audit, and games that were drawn and missed. An actor with too many failed ones is suspended.
    pub(super) fn audited(
        &mut self,
        connection: &Connection,
        report: Option<&AuditReport>,
        missed: u64,
        now: Now,
    ) -> Result<(), StoreError> {
        if missed > 0 {
            let nobody = self.audits.entry(audits::NOBODY.to_owned()).or_default();
            nobody.missed += missed;
            audits::set_count(connection, audits::NOBODY, *nobody)?;
        }
        let Some(report) = report else { return Ok(()) };
        let fault = self.fault(report);
        let count = self.audits.entry(report.actor.clone()).or_default();
        count.audited += 1;
        count.failed += u64::from(fault.is_some());
        let count = *count;
        audits::set_count(connection, &report.actor, count)?;
        if let Some(fault) = &fault {
            self.audit_failed(connection, report, fault, count, now)?;
        }
        Ok(())
    }

    /// What is wrong with an audited game, in a sentence.
    fn fault(&self, report: &AuditReport) -> Option<String> {
        // Actors search every ply: a record without a search hides what its network saw.
        if report.differences.is_empty() {
            return Some("no ply states what its network saw".to_owned());
        }
        // What an actor says of itself chooses among tolerances. Nothing that it says takes a position out of its audit.
        let live = self.live_actors.get(&report.actor);
        let place = Place::of(live.map(|live| live.provider.as_str()));
        let tolerances = report.config.tolerances(place);
        Difference::worst(&report.differences, &tolerances).and_then(|worst| worst.fault(&tolerances))
    }

    fn audit_failed(
        &mut self,
        connection: &Connection,
        report: &AuditReport,
        fault: &str,
        count: AuditCount,
        now: Now,
    ) -> Result<(), StoreError> {
        let actor = report.actor.as_str();
        let greatest = report.differences.iter().map(Difference::greatest).reduce(f32::max);
        let failure = AuditFailure {
            game: report.game,
            actor,
            model: report.model,
            positions: report.positions,
            difference: greatest.unwrap_or(1.0),
            detail: fault,
        };
        audits::insert_failure(connection, &failure, now.unix_ms)?;
        tracing::warn!(game = %report.game, %actor, fault, failed = count.failed, "a game failed its audit");
        let Some(row) = self.actors.get_mut(actor) else {
            return Ok(());
        };
        row.strikes += 1;
        let held_against = count.failed - count.forgiven;
        if held_against >= u64::from(report.config.strikes) && row.suspended_ms.is_none() {
            row.suspended_ms = Some(now.unix_ms);
            let detail = format!(
                "{actor}: {} games failed their audit, the last one at {fault}",
                count.failed
            );
            let entry = Entry {
                who: trail::COORDINATOR,
                action: "suspend-actor",
                detail: &detail,
                old: "served",
                new: "suspended",
            };
            trail::append(connection, &entry, now.unix_ms)?;
            tracing::error!(%actor, failed = count.failed, "actor suspended");
        }
        actors::set_strikes(connection, actor, row.strikes, row.suspended_ms)
    }

    /// Forgives an actor the games that failed so far.
    pub(super) fn forgive_audits(&mut self, connection: &Connection, actor: &str) -> Result<(), StoreError> {
        if let Some(count) = self.audits.get_mut(actor) {
            count.forgiven = count.failed;
            audits::set_count(connection, actor, *count)?;
        }
        Ok(())
    }

    /// How games are audited, and what is not judged here, for people.
    pub(super) fn audit(&self) -> String {
        let says = &self.facts.audit;
        match self.withheld.as_str() {
            "" => says.clone(),
            withheld => format!("{says}; not judged: {withheld}"),
        }
    }

    /// Audits of all actors together.
    pub(super) fn audit_totals(&self) -> AuditCount {
        self.audits
            .values()
            .fold(AuditCount::default(), |sum, count| AuditCount {
                audited: sum.audited + count.audited,
                failed: sum.failed + count.failed,
                missed: sum.missed + count.missed,
                forgiven: sum.forgiven + count.forgiven,
            })
    }
}
