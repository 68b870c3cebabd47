//! `tengen doctor`: why nothing moves, or what slows the run down.

use std::fmt::Write;

use clap::Args;
use tengen_proto::v1::{DiagnoseRequest, Diagnosis, Finding, Severity};

use crate::client::{CoordinatorArgs, explain};
use crate::json;

#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    coordinator: CoordinatorArgs,
    /// Print JSON, names as in the .proto files
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: DoctorArgs) -> anyhow::Result<()> {
    let run = args.coordinator.reach().await?;
    let answer = run.runs()?.diagnose(DiagnoseRequest {}).await;
    let diagnosis = answer.map_err(|status| explain(&status))?.into_inner();
    if args.json {
        println!("{}", serde_json::to_string_pretty(&json::of(&diagnosis, "Diagnosis")?)?);
    } else {
        print!("{}", page(&diagnosis));
    }
    Ok(())
}

fn page(diagnosis: &Diagnosis) -> String {
    if diagnosis.findings.is_empty() {
        return "nothing is wrong\n".to_owned();
    }
    diagnosis.findings.iter().map(finding).collect::<Vec<_>>().join("\n")
}

fn finding(finding: &Finding) -> String {
    let word = match finding.severity() {
        Severity::Stops => "STOPS",
        Severity::Slows => "slows",
        Severity::Note | Severity::Unspecified => "note",
    };
    let mut text = format!("{word:<6} {} ({})\n", finding.sentence, finding.cause);
    for evidence in &finding.evidence {
        let _ = writeln!(text, "       {evidence}");
    }
    let _ = writeln!(text, "       -> {}", finding.remedy);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_finding_has_its_evidence_and_what_helps() {
        assert_eq!(page(&Diagnosis::default()), "nothing is wrong\n");
        let diagnosis = Diagnosis {
            findings: vec![Finding {
                cause: "no-actor".to_owned(),
                severity: Severity::Stops.into(),
                sentence: "no actor is connected".to_owned(),
                evidence: vec!["3 actors have ever registered".to_owned()],
                remedy: "tengen-actor --join URL --data DIR".to_owned(),
            }],
        };
        let wanted = "STOPS  no actor is connected (no-actor)\n       3 actors have ever registered\n       -> tengen-actor --join URL --data DIR\n";
        assert_eq!(page(&diagnosis), wanted);
    }
}
