// Above the fold: is it training, how fast, how good, how stale, who is waited for, what is wrong.

import {byId, children, make, setText, setTone, showPairs, type Cell, type Tone} from "./dom";
import {epochOf, type RunHistory} from "./history";
import type {Alarm, Evaluation, Status} from "./status";
import {count, duration, figure, members, percent, policy} from "./text";

const PHASES: Record<string, [string, Tone]> = {
  WAITING_FOR_SERVERS: ["waits for its servers", "warning"],
  WAITING_FOR_WORKERS: ["waits for its workers", "warning"],
  INITIALIZING: ["makes its first weights", ""],
  TRAINING: ["trains", "good"],
  DRAINING: ["ends: its last rounds close", ""],
  EVALUATING: ["measures its last weights", ""],
  FINISHED: ["is finished", "good"],
  FAILED: ["has failed", "alarm"],
};

function progress(status: Status): string {
  const share = status.batches_total > 0 ? status.batches_done / status.batches_total : 0;
  const left = share > 0 && share < 1 ? (status.seconds / share) * (1 - share) : 0;
  const isLeft = status.phase === "TRAINING" && left > 0;
  return `${percent(share)} in ${duration(status.seconds)}${
      isLeft ? `, about ${duration(left)} left` : ""}`;
}

function awaited(status: Status): Cell {
  const missing = status.missing;
  const servers = missing.servers.map((server) => server.shard);
  if (servers.length > 0)
    return {text: members("server", servers), tone: "alarm", hint: "the run cannot go on"};
  if (missing.workers.length > 0) {
    return {
      text: members("worker", missing.workers),
      tone: "alarm",
      hint: "others may take their places"
    };
  }
  if (missing.more_workers > 0)
    return {text: `${missing.more_workers} more workers`, tone: "alarm", hint: "any"};
  const waited = [...new Set(status.waiting_rounds.flatMap((round) => round.waiting_for))].sort(
      (a, b) => a - b);
  const still = Math.max(0, ...status.waiting_rounds.map((round) => round.unchanged_seconds));
  const tone = still > 1 ? "warning" : "";
  if (waited.length > 0)
    return {text: members("worker", waited), tone, hint: `nothing new for ${duration(still)}`};
  const reader = status.readers.find((one) => one.is_awaited);
  if (reader !== undefined)
    return {text: `reader ${reader.name || reader.reader}`, tone: "warning", hint: "it lags"};
  const isOpen = status.waiting_rounds.length > 0;
  return isOpen ? {text: "any worker", tone, hint: "for the next gradient"}
                : {text: "nobody", hint: ""};
}

function testOf(last: Evaluation|undefined): string {
  if (last === undefined) return "not tested yet";
  const accuracy = last.test_accuracy;
  const result = accuracy === null ? `loss ${figure(last.test_loss)}` : percent(accuracy);
  return `${result} in the test at epoch ${figure(last.epochs_measured || last.epoch, 3)}`;
}

/** "nothing is wrong" or "2 things are wrong": of what changes each second, nothing is read out. */
function wrong(alarms: Alarm[]): string {
  const count = alarms.filter((alarm) => alarm.level !== "note").length;
  if (count === 0) return "nothing is wrong";
  return count === 1 ? "one thing is wrong" : `${count} things are wrong`;
}

export class Summary {
  private readonly state = make("p");
  private readonly alarms = make("ul");
  private readonly fine = make("p", {class: "note"});

  constructor() {
    byId("state").append(this.state);
    byId("alarms").append(make("h3", {}, "What is wrong"), this.alarms, this.fine);
  }

  show(status: Status, alarms: Alarm[], history: RunHistory): void {
    setText(byId("title"), status.name);
    const [words, tone] = PHASES[status.phase] ?? [status.phase.toLowerCase(), ""];
    const why = status.ended_by === "" ? "" : ` (ended by ${status.ended_by})`;
    setText(this.state, `The run ${words}${why}; ${wrong(alarms)}`);
    const worst = alarms[0]?.level ?? "note";
    setTone(this.state, worst === "note" ? tone : worst);
    document.title = `${status.name}: ${words}`;
    this.showTiles(status, history);
    children(this.alarms, alarms.length, () => make("li"));
    alarms.forEach((alarm, i) => {
      const item = this.alarms.children[i];
      if (item === undefined) return;
      setText(item, alarm.text);
      setTone(item, alarm.level === "note" ? "" : alarm.level);
    });
    setText(this.fine, alarms.length === 0 ? "Nothing is." : "");
    this.alarms.hidden = alarms.length === 0;
  }

  private showTiles(status: Status, history: RunHistory): void {
    const live = status.workers.filter((worker) => worker.state === "live").length;
    const isTraining = status.phase === "TRAINING";
    const rate = (isTraining ? history.rate() : null) ?? status.examples_per_second;
    const tested = testOf(status.evaluations[status.evaluations.length - 1]);
    const stale = status.staleness;
    const hasAccuracy = status.train_accuracy !== null && status.examples > 0;
    showPairs(byId("tiles"), [
      [
        "Progress", {
          text: `epoch ${figure(epochOf(status), 3)} of ${count(status.epochs_total)}`,
          hint: progress(status)
        }
      ],
      [
        "Speed",
        {
          text: `${count(Math.round(rate))} examples/s`,
          hint: `${live} of ${status.workers_expected} workers live`
        },
      ],
      [
        "Quality",
        {
          text: hasAccuracy ? `${percent(status.train_accuracy)} in training`
                            : `loss ${figure(status.train_loss)}`,
          hint: hasAccuracy ? `loss ${figure(status.train_loss)}; ${tested}` : tested,
        },
      ],
      [
        "Staleness",
        {
          text: `⟨σ⟩ ${figure(stale.window_mean, 3)}`,
          hint: `99 % at most ${stale.p99}, the most ${stale.max}; ${
              policy(status.policy, status.policy_parameters)}`,
        },
      ],
      ["Waited for", awaited(status)],
    ]);
  }
}
