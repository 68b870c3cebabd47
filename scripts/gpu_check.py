"""What the numbers of `scripts/gpu-check` say: `gpu_check.py ROWS PART [WORD...]`, which that script alone calls.

Each part but `report` reads standard input (statuses of a cluster, a line each, or what a program measured) and adds rows to
the file ROWS: checks, which hold or do not, and figures. `report` makes a table and a JSON file of them.
"""

import json
import os
import sys

# Games audited once the first trained network is played in fp16.
AUDITS = 50


class Rows:
    """The file of what was found, a JSON object a line."""

    def __init__(self, path):
        self.path = path

    def add(self, **row):
        with open(self.path, "a") as rows:
            rows.write(json.dumps(row) + "\n")

    def check(self, what, holds, found):
        self.add(kind="check", what=what, holds=bool(holds), found=str(found))

    def figure(self, what, value, unit, **beside):
        self.add(kind="figure", what=what, value=value, unit=unit, **beside)

    def missing(self, what, why):
        self.check(what, False, f"not measured: {why}")

    def all(self, kind):
        with open(self.path) as lines:
            rows = [json.loads(line) for line in lines]
        return [{key: value for key, value in row.items() if key != "kind"} for row in rows if row["kind"] == kind]


def statuses():
    """The statuses on standard input; the last line may have been cut off."""
    for line in sys.stdin:
        if line.endswith("\n"):
            yield json.loads(line)


def events(log, message):
    """The fields of the events with this message in a process's log; none where it has not begun one."""
    if not os.path.exists(log):
        return []
    with open(log) as lines:
        found = [json.loads(line) for line in lines if message in line and line.endswith("\n")]
    return [event["fields"] for event in found if event["message"] == message]


def first_actor(status):
    return status["actors"][0] if status["actors"] else {}


def rejected(status):
    return sum(status["rejected"].values())


def gone_wrong(status):
    """Whether something has happened that waiting does not mend."""
    given_up = (status["learner"] or {}).get("candidates_given_up", 0)
    return rejected(status) + status["audit_failed"] + given_up > 0 or first_actor(status).get("gave_up", False)


def provider_of(device):
    return "CPUExecutionProvider" if device == "cpu" else "CUDAExecutionProvider"


def why_not(precision, actor, logs):
    """Why the actor does not play in this precision, as far as it or the learner has said so."""
    refused = events(f"{logs}/learner.log", "the network is not offered in this precision")
    reasons = [event["error"] for event in refused if event["precision"] == precision]
    reasons += [event["why"] for event in events(f"{logs}/actor-0.log", "a network is played in fp32")]
    reasons.append(actor.get("precision_fell_back"))
    told = list(dict.fromkeys(reason for reason in reasons if reason))
    played = actor.get("precision") or "no precision"
    return f"{played} is told; " + ("; ".join(told) or "nobody says why")


def proof(rows, device, logs):
    """A whole run: who computed where and in what, what came of it, and whether audits of every game believe it."""
    status = promoted = halved = None
    for status in statuses():
        actor = first_actor(status)
        if promoted is None and status["generation"] >= 1:
            promoted = status
        if halved is None and promoted and (actor.get("precision"), actor.get("provider")) == ("fp16", provider_of(device)):
            halved = status
        if gone_wrong(status) or (halved and status["audited"] >= halved["audited"] + AUDITS):
            break
    if status is None:
        rows.missing("a whole run", "no status came")
        sys.exit(1)
    actor, learner = first_actor(status), status["learner"] or {}
    log = f"{logs}/actor-0.log"
    who_computes(rows, device, actor, learner)
    what_came(rows, status, promoted, halved)
    near = [event["found"] for event in events(log, "a reduced precision is faithful here")]
    rows.check(
        f"trained networks are played in fp16 on {provider_of(device)}",
        halved and near,
        near[-1] if halved and near else why_not("fp16", actor, logs),
    )
    differences = [float(event["difference"]) for event in events(log, "network ready")]
    rows.check(
        "the actor's networks answer their probes",
        differences,
        f"{len(differences)} networks, greatest difference {max(differences):.1e}" if differences else "none is ready",
    )
    # Without an evaluation there is nothing to measure either.
    sys.exit(actor.get("evaluations", 0) == 0)


def who_computes(rows, device, actor, learner):
    on_cpu = device == "cpu"
    provider = provider_of(device)
    found = actor.get("provider")
    rows.check(f"self-play's execution provider is {provider}", found == provider, found or actor.get("waiting") or "none")
    rows.check(f"self-play's device is {device}", actor.get("device") == device, actor.get("device") or "none")
    rows.check(f"training's device is {device}", learner.get("device") == device, learner.get("device") or "none")
    for who, part in ("self-play", actor), ("training", learner):
        busy = (part.get("usage") or {}).get("gpu_busy")
        rows.check(
            f"{who} tells of no GPU" if on_cpu else f"{who} tells how busy its GPU is",
            (busy is None) == on_cpu,
            "nothing told" if busy is None else f"{busy:.0%} busy",
        )


def what_came(rows, status, promoted, halved):
    learner = status["learner"] or {}
    if promoted:
        reached = f"after {promoted['uptime_ms'] / 1000:.0f} s"
    else:
        why = first_actor(status).get("waiting") or status["waiting"] or "nobody says why"
        reached = f"not within {status['uptime_ms'] / 1000:.0f} s; {why}"
    rows.check("a trained network is champion", promoted, reached)
    games = status["games"] + status["match_games"]
    reasons = ", ".join(sorted(status["rejected"]))
    rows.check(
        "no game is rejected",
        rejected(status) == 0 and games > 0,
        f"{rejected(status)} rejected of {games} stored" + (f": {reasons}" if reasons else ""),
    )
    since = f", {status['audited'] - halved['audited']} of them since fp16 is played" if halved else ""
    rows.check(
        "audits on the CPU raise no false alarm, and judge every precision",
        status["audit_failed"] == 0 and status["audited"] >= AUDITS and "not judged" not in status["audit"],
        f"{status['audit_failed']} of {status['audited']} audited games failed{since}, {status['audit_missed']} were missed; "
        f"audited are {status['audit']}",
    )
    given_up = learner.get("candidates_given_up", 0)
    rows.check(
        "exported networks compute what the learner computes",
        promoted and given_up == 0,
        f"greatest difference {learner.get('parity', 0):.1e}, {given_up} given up" if learner else "no learner",
    )


def mean(values):
    told = [value for value in values if value is not None]
    return sum(told) / len(told) if told else None


def prepared(rows, what, precision, logs):
    """Waits until a trained network is played in this precision; fails when none is."""
    actor = {}
    for status in statuses():
        actor = first_actor(status)
        if actor.get("precision") == precision:
            return
        if gone_wrong(status):
            break
    rows.missing(what, why_not(precision, actor, logs))
    sys.exit(1)


def self_play(rows, what, precision, log, warm_up_s, measured_s):
    """Evaluations a second of a cluster in this precision, between two reports of its actor."""
    first = begun = last = None
    actor, uses = {}, []
    for status in statuses():
        actor = first_actor(status)
        if actor.get("evaluations", 0) in (0, last):
            continue
        # It has just reported: its counters are no older than the time between two statuses.
        last, now = actor["evaluations"], status["clock_unix_ms"] / 1000
        first = first or now
        if begun is None:
            if now - first >= float(warm_up_s):
                begun = (now, last, status["positions"])
            continue
        uses.append(actor["usage"] or {})
        seconds = now - begun[0]
        if seconds >= float(measured_s):
            break
    else:
        rows.missing(what, actor.get("waiting") or "too few reports of the actor came in time")
        return
    if actor["precision"] != precision:
        rows.missing(what, f"it was played in {actor['precision']}")
        return
    rate = (last - begun[1]) / seconds
    in_fp32 = [row["value"] for row in rows.all("figure") if row["what"] == what.replace(precision, "fp32")]
    pace = (events(log, "how fast one session evaluates here, by size of batch") or [{}])[-1]
    alone = [float(rate.split(":")[1]) for rate in pace.get("evaluations_per_second", "").split(",") if rate]
    rows.figure(
        what,
        rate,
        "evaluations/s",
        times_fp32=rate / in_fp32[-1] if in_fp32 else None,
        positions_per_second=(status["positions"] - begun[2]) / seconds,
        provider=actor["provider"],
        threads=pace.get("threads"),
        games=pace.get("games"),
        batch=pace.get("batch"),
        one_session_alone=max(alone, default=None),
        gpu_busy=mean(use.get("gpu_busy") for use in uses),
        cpu_cores=mean(use.get("cpu_cores") for use in uses),
        seconds=seconds,
    )


def training(rows, what, device):
    """Samples a second, from what `tengen-learner bench` says."""
    try:
        told = json.load(sys.stdin)
    except ValueError:
        rows.missing(what, "the learner gave no figure; logs.txt may say why")
        return
    if told["device"] != device:
        rows.missing(what, f"the learner computed on {told['device']}")
        return
    rows.figure(
        what,
        told["steps_per_second"] * told["batch"],
        "samples/s",
        threads=told["threads"],
        batch=told["batch"],
        cpu_cores=told["cpu_seconds_per_step"] * told["steps_per_second"],
        steps=told["steps"],
    )


# What is told beside a figure, and how.
BESIDE = {
    "times_fp32": "{:.2f} times fp32",
    "threads": "{} threads",
    "games": "{} games at once",
    "batch": "batches of {}",
    "positions_per_second": "{:,.1f} positions/s",
    "one_session_alone": "one session alone {:,.0f}",
    "gpu_busy": "GPU {:.0%} busy",
    "cpu_cores": "{:.1f} cores busy",
}


def in_words(row):
    beside = [words.format(row[key]) for key, words in BESIDE.items() if row.get(key) is not None]
    return f"{row['value']:,.0f} {row['unit']} ({', '.join(beside)})"


def page(found):
    """Tables for docs/benchmarks.md."""
    warnings = [
        (found["rehearsal"], "**A rehearsal on the CPU: it proves nothing about a GPU.**"),
        (found["quick"], "**Quick: the figures say nothing.**"),
    ]
    lines = [line for holds, warning in warnings if holds for line in (warning, "")]
    lines += [f"Machine: {found['machine']}.", "", "| check | holds | found |", "|---|---|---|"]
    for row in found["checks"]:
        told = row["found"].replace("|", "/").replace("\n", " ")
        lines.append(f"| {row['what']} | {'yes' if row['holds'] else '**no**'} | {told} |")
    lines += ["", "| what | figure |", "|---|---|"]
    lines += [f"| {row['what']} | {in_words(row)} |" for row in found["figures"]]
    return "\n".join(lines) + "\n"


def report(rows, out, device, quick, seconds, machine):
    """Writes and prints what was found; fails unless every check holds."""
    found = {
        "machine": machine,
        "device": device,
        "rehearsal": device == "cpu",
        "quick": quick == "yes",
        "seconds": int(seconds),
        "checks": rows.all("check"),
        "figures": rows.all("figure"),
    }
    with open(f"{out}/gpu-check.json", "w") as file:
        file.write(json.dumps(found, indent=2) + "\n")
    with open(f"{out}/gpu-check.md", "w") as file:
        file.write(page(found))
    print(page(found))
    broken = [row["what"] for row in found["checks"] if not row["holds"]]
    print("gpu-check: " + (f"does not hold: {'; '.join(broken)}" if broken else "every check holds"))
    sys.exit(bool(broken))


PARTS = {
    "proof": proof,
    "prepared": prepared,
    "self-play": self_play,
    "training": training,
    "missing": Rows.missing,
    "report": report,
}

if __name__ == "__main__":
    path, part, *words = sys.argv[1:]
    PARTS[part](Rows(path), *words)
