"""One run under each policy by four workers that share the GPU, beside the same on processors."""
import json

import report

POLICIES = ("hardsync", "softsync", "async")
POINTS_MAX = 0.5  # Of accuracy, between the GPU's run and the processors'.
TIMEOUT = 600
SYNTHETIC = ("data.format=synthetic", "data.train_examples=20000", "data.test_examples=4000")


def run(programs, options, policy, device):
    data = (f"data.path={options.data.resolve()}",) if options.data else SYNTHETIC
    settings = [*data, f"training.epochs={options.epochs}", f"compute.device={device}"]
    command = [programs.program("psctl"), "run", str(programs.root / "examples" / f"{policy}.yaml"),
               "-o", "json"]
    for setting in settings:
        command += ["--set", setting]
    status, said = programs.run(command, TIMEOUT)
    begin = said.find("\n{\n") + 1 if not said.startswith("{") else 0
    if status != 0 or "{" not in said:
        print(said[-4000:])
        return None
    return json.JSONDecoder().raw_decode(said[begin:])[0]


def hidden_share(summary):
    shares = [worker.get("communication_hidden", 0) for worker in summary["workers"]]
    return sum(shares) / len(shares) if shares else 0


def measure(programs, options):
    rows, failed = [], False
    for policy in POLICIES:
        summaries = {device: run(programs, options, policy, device) for device in ("cuda", "cpu")}
        if None in summaries.values():
            rows.append((policy, "did not end well", "", "", "", ""))
            failed = True
            continue
        points = [100 * summaries[device]["test_accuracy"] for device in ("cuda", "cpu")]
        failed |= abs(points[0] - points[1]) > POINTS_MAX
        rates = [round(summaries[device]["examples_per_second"]) for device in ("cuda", "cpu")]
        rows.append((policy, *(f"{value:.2f}" for value in points), *rates,
                     f"{100 * hidden_share(summaries['cuda']):.1f} %"))
    lines = report.table(["policy", "accuracy, GPU", "accuracy, processors", "examples/s, GPU",
                          "examples/s, processors", "communication hidden"], rows)
    what = "Fashion-MNIST" if options.data else "generated examples"
    lines += ["", f"LeNet-5, {what}, {options.epochs} epochs, four workers; accuracies may differ by "
              f"{POINTS_MAX} points."]
    return report.Section("Training", lines, failed)
