// Workers, shards, rounds that wait, readers, events, settings, and the commands of operators.

import {byId, make, setText, showPairs, Table, type Cell} from "./dom";
import type {Reader, Shard, Status, Worker} from "./status";
import {bytes, count, duration, figure, members, percent, policy, timeOfDay} from "./text";

const cell = (text: string|number): Cell => ({text: String(text)});

function workerState(worker: Worker): Cell {
  if (worker.state === "dead") return {text: "dead", tone: "alarm", hint: worker.failure};
  if (worker.is_stalled)
    return {text: "stalled", tone: "warning", hint: "it lives, and does nothing"};
  if (worker.is_straggler)
    return {text: "straggler", tone: "warning", hint: worker.straggler_reason};
  return {text: worker.state, hint: ""};
}

function workerRow(worker: Worker): Cell[] {
  const isLive = worker.state === "live";
  return [
    cell(worker.worker),
    workerState(worker),
    cell(worker.host),
    cell(count(worker.pushes)),
    cell(isLive ? count(Math.round(worker.examples_per_second)) : "–"),
    cell(isLive ? duration(worker.step_seconds) : "–"),
    cell(figure(worker.train_loss)),
    cell(percent(worker.train_accuracy)),
    cell(`${figure(worker.mean_staleness, 3)} (${worker.last_staleness})`),
    cell(percent(worker.compute_share, 0)),
    cell(isLive ? duration(worker.lease_left_seconds) : "–"),
    cell(worker.losses),
  ];
}

function shardRow(shard: Shard, newest: number, interval: number): Cell[] {
  const {version, age_seconds: age} = shard.checkpoint;
  const isOld = interval > 0 && age > 3 * interval + 30;
  return [
    cell(shard.shard),
    cell(shard.address),
    cell(count(shard.end - shard.begin)),
    cell(shard.version.toLocaleString("en")),
    cell(newest - shard.version),
    cell(figure(shard.updates_per_second, 3)),
    cell(`${figure(shard.staleness.window_mean, 3)} (${shard.staleness.max})`),
    cell(`${shard.round_contributions} of ${shard.round_size}`),
    cell(bytes(shard.bytes_queued)),
    cell(`${bytes(shard.pushed_bytes)} / ${bytes(shard.pulled_bytes)}`),
    {text: duration(shard.silent_seconds), tone: shard.silent_seconds > 2 ? "alarm" : ""},
    {
      text: version > 0 || age > 0 ? `${version}, ${duration(age)} ago` : "–",
      tone: isOld ? "warning" : ""
    },
    cell(shard.generation),
  ];
}

function readerRow(reader: Reader): Cell[] {
  return [
    cell(reader.name === "" ? reader.reader : reader.name),
    {text: reader.is_awaited ? "awaited" : reader.state, tone: reader.is_awaited ? "warning" : ""},
    cell(reader.host),
    cell(reader.version ?? "–"),
    cell(`${reader.lag}, at most ${reader.lag_highest}`),
    cell(duration(reader.lag_seconds)),
    cell(count(reader.taken)),
    cell(`${bytes(Math.round(reader.bytes_per_second))}/s`),
  ];
}

const WORKER_COLUMNS =
    ("worker|state|host|pushes|examples/s|step|loss|accuracy|mean σ (last)|computes|" +
     "lease left|losses")
        .split("|");
const SHARD_COLUMNS =
    ("shard|address|parameters|version|behind the newest|updates/s|mean σ (most)|round|queued|" +
     "pushed / pulled|heard ago|checkpoint|restarts")
        .split("|");
const READER_COLUMNS =
    "reader|state|host|version|versions behind|time behind|taken|rate".split("|");
const ROUND_COLUMNS =
    "shard|version|gradients|open for|nothing new for|waits for|what comes next".split("|");

export class Tables {
  private readonly workers =
      new Table(byId("workers"), "Workers", WORKER_COLUMNS, "No worker has come yet.");
  private readonly shards =
      new Table(byId("shards"), "Shards", SHARD_COLUMNS, "No server has come yet.");
  private readonly skew = make("p", {class: "note"});
  private readonly rounds = new Table(byId("rounds"), "Rounds that wait", ROUND_COLUMNS, "None.");
  private readonly readers =
      new Table(byId("readers"), "Readers", READER_COLUMNS, "Nobody only reads weights.");
  private readonly unlisted = make("p", {class: "note"});
  private readonly events =
      new Table(byId("events"), "Events", ["time", "what", "text"], "Nothing has happened yet.");
  private readonly settings = make("dl", {class: "pairs"});
  private readonly stages = new Table(
      byId("settings"),
      "Stages of the run",
      ["stage", "policy", "learning rate", "until epoch"],
      "",
  );
  private readonly commands = make("dl", {class: "commands"});

  constructor() {
    byId("shards").append(this.skew);
    byId("readers").append(this.unlisted);
    byId("settings").append(this.settings);
    byId("commands").append(this.commands);
  }

  show(status: Status): void {
    this.workers.show(status.workers.map(workerRow));
    const newest = Math.max(0, ...status.shards.map((shard) => shard.version));
    const interval = status.checkpoint_interval_seconds;
    this.shards.show(status.shards.map((shard) => shardRow(shard, newest, interval)));
    setText(
        this.skew,
        `Version skew: ${
            status.version_skew} between the shards at one moment. Reports of shards are of ` +
            "different moments, so that “behind the newest” is above it.",
    );
    this.rounds.show(
        status.waiting_rounds.map(
            (round) =>
                [cell(round.shard),
                 cell(round.version),
                 cell(`${round.contributions} of ${round.round_size}`),
                 cell(duration(round.open_seconds)),
                 cell(duration(round.unchanged_seconds)),
                 cell(round.waiting_for.length > 0 ? members("worker", round.waiting_for) : "any"),
                 cell(round.outlook),
    ]),
    );
    this.readers.show(status.readers.map(readerRow));
    setText(
        this.unlisted, status.readers_unlisted > 0 ? `And ${status.readers_unlisted} more.` : "");
    this.events.show(
        [...status.events].reverse().map(
            (event) =>
                [cell(timeOfDay(event.time_ms)),
                 {text: event.kind, tone: event.is_warning ? "warning" : ""},
                 cell(event.text),
    ]),
    );
    this.showSettings(status);
    this.showCommands(status.shards[0]?.address ?? "HOST:PORT");
  }

  private showSettings(status: Status): void {
    this.stages.show(
        status.stages.map(
            (stage, i) =>
                [{
                  text: i === status.stage ? `${i}, now` : String(i),
                  tone: i === status.stage ? "good" : ""
                },
                 cell(policy(stage.policy, stage.parameters)),
                 cell(figure(stage.learning_rate)),
                 cell(stage.until_epoch),
    ]),
    );
    const guard = status.guard;
    const refused = Object.entries(status.refusals).filter(([, times]) => times > 0);
    showPairs(this.settings, [
      ["run", cell(`${status.name}, ${status.run}`)],
      ["parameters", cell(status.parameters.toLocaleString("en"))],
      ["workers", cell(status.workers_expected)],
      ["gradients per update", cell(status.round_size)],
      [
        "learning rate",
        cell(`${figure(status.learning_rate)}, effectively ${
            figure(status.effective_learning_rate)}`),
      ],
      [
        "bound of staleness",
        cell(
            guard.action === "" ? "none"
                                : `${guard.bound}, ${guard.action}: ${guard.rejected} rejected, ${
                                      guard.dropped} dropped, ` +
                    `${guard.scaled} scaled`,
            ),
      ],
      [
        "refused pushes",
        cell(refused.map(([why, times]) => `${why} ${times}`).join(", ") || "none")
      ],
      ["checkpoints", cell(interval(status.checkpoint_interval_seconds))],
      [
        "ends",
        cell(`${status.epochs_total} epochs${
            status.seconds_max > 0 ? `, ${duration(status.seconds_max)}` : ""}`)
      ],
      ["program", cell(`Slipstream ${status.server_version}, protocol ${status.protocol}`)],
    ]);
  }

  private showCommands(address: string): void {
    const where = `--coordinator ${address}`;
    const commands: [string, string][] = [
      ["watch it in a terminal", `psctl status --watch ${where}`],
      ["what happened", `psctl events --follow ${where}`],
      ["end training and save the weights", `psctl stop ${where}`],
      ["change the learning rate", `psctl set optimizer.learning_rate=0.01 ${where}`],
      ["change the policy", `psctl set consistency.policy=softsync consistency.n=2 ${where}`],
      ["save a checkpoint now", `psctl checkpoint save ${where}`],
      ["end a server, which saves first", `psctl drain --server 1 ${where}`],
    ];
    showPairs(this.commands, commands.map(([what, command]) => [what, cell(command)]));
  }
}

function interval(seconds: number): string {
  return seconds > 0 ? `every ${duration(seconds)}` : "none";
}
