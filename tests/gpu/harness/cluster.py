"""Runs psctl, and reads the results of runs."""
import json
import statistics

TIMEOUT = 120


def run(programs, policy, settings):
    """Runs an example with these settings. Returns the summary, or None after a failure, whose logs
    are kept."""
    command = [programs.program("psctl"), "run", str(programs.root / "examples" / f"{policy}.yaml"),
               "-o", "json"]
    for setting in settings:
        command += ["--set", setting]
    status, said = programs.run(command, TIMEOUT)
    begin = said.find("\n{\n") + 1 if not said.startswith("{") else 0
    summary = json.JSONDecoder().raw_decode(said[begin:])[0] if said[begin:begin + 1] == "{" else {}
    if status == 0 and summary:
        return summary
    print(said[-4000:], flush=True)
    programs.keep_logs(programs.scratch / (summary.get("run_dir") or "."))
    return None


def share(summary, name):
    """Returns the mean over the workers of their values under `name`."""
    shares = [worker.get(name) or 0 for worker in summary["workers"]]
    return sum(shares) / len(shares) if shares else 0


def steps_of(programs, summary):
    """Returns the steps in the run's metrics, each with the times of its lanes."""
    metrics = programs.scratch / (summary.get("run_dir") or "") / "metrics.jsonl"
    lines = metrics.read_text(encoding="utf-8").splitlines() if metrics.exists() else []
    return [step for line in lines for step in json.loads(line).get("lanes", [])]


def median_to_applied(programs, summary):
    """Returns the median time, in milliseconds, from the moment when the first gradient is on the
    host and is sent until the last shard begins to answer; None if it is unknown."""
    applied = [max(begin for begin, _ in step["pull"]) - min(begin for begin, _ in step["push"])
               for step in steps_of(programs, summary) if step["pull"] and step["push"]]
    return 1000 * statistics.median(applied) if applied else None


def median_backward(programs, summary):
    """Returns the median time of backward in milliseconds, from the loss to the last gradient on
    the host."""
    backward = [step["backward"][1] - step["backward"][0] for step in steps_of(programs, summary)]
    return 1000 * statistics.median(backward) if backward else None


def milliseconds(value):
    return "unknown" if value is None else f"{value:.2f}"
