// The status of a run as /status/stream sends it: proto/status.proto and proto/shard_status.proto,
// of which only what the page shows is named here. What is absent is null.

export interface Parameter {
  key: string;
  value: number;
}

export interface Stage {
  policy: string;
  parameters: Parameter[];
  learning_rate: number;
  until_epoch: number;
}

export interface Staleness {
  count: number;
  mean: number;
  window_mean: number;
  p50: number;
  p99: number;
  max: number;
  histogram: number[];
  cdf: number[];
}

export interface Guard {
  action: string;
  bound: number;
  rejected: number;
  dropped: number;
  scaled: number;
}

export interface Shard {
  shard: number;
  address: string;
  begin: number;
  end: number;
  version: number;
  updates_per_second: number;
  staleness: Staleness;
  bytes_queued: number;
  round_contributions: number;
  round_size: number;
  silent_seconds: number;
  pushed_bytes: number;
  pulled_bytes: number;
  generation: number;
  checkpoint: {version: number; age_seconds: number; bytes: number};
}

export interface Lane {
  push_begin: number;
  push_end: number;
  pull_begin: number;
  pull_end: number;
}

export interface Step {
  step: number;
  forward_begin: number;
  backward_end: number;
  waited_seconds: number;
  lanes: Lane[];
}

export interface Worker {
  worker: number;
  state: string;
  host: string;
  pushes: number;
  examples_per_second: number;
  train_loss: number|null;
  train_accuracy: number|null;
  compute_share: number;
  lease_left_seconds: number;
  last_staleness: number;
  mean_staleness: number;
  recent_steps: Step[];
  step_seconds: number;
  is_straggler: boolean;
  straggler_reason: string;
  failure: string;
  is_stalled: boolean;
  losses: number;
}

export interface Evaluation {
  epoch: number;
  test_accuracy: number|null;
  test_loss: number|null;
  final: boolean;
  number: number;
  epochs_measured: number;
  age_seconds: number|null;
}

export interface WaitingRound {
  shard: number;
  version: number;
  contributions: number;
  round_size: number;
  open_seconds: number;
  unchanged_seconds: number;
  waiting_for: number[];
  outlook: string;
}

export interface Reader {
  reader: number;
  state: string;
  host: string;
  name: string;
  version: number|null;
  lag: number;
  lag_seconds: number;
  lag_highest: number;
  taken: number;
  bytes_per_second: number;
  is_awaited: boolean;
}

export interface RunEvent {
  number: number;
  time_ms: number;
  kind: string;
  is_warning: boolean;
  text: string;
}

export interface Status {
  name: string;
  run: string;
  phase: string;
  failure: string;
  policy: string;
  policy_parameters: Parameter[];
  round_size: number;
  learning_rate: number;
  effective_learning_rate: number;
  seconds: number;
  seconds_max: number;
  updates: number;
  pushes: number;
  examples: number;
  examples_per_second: number;
  batches_total: number;
  batches_done: number;
  epochs: number;
  epochs_total: number;
  train_loss: number|null;
  train_accuracy: number|null;
  version_skew: number;
  staleness: Staleness;
  shards: Shard[];
  workers: Worker[];
  evaluations: Evaluation[];
  parameters: number;
  guard: Guard;
  ended_by: string;
  waiting_rounds: WaitingRound[];
  refusals: Record<string, number>;
  server_version: string;
  protocol: number;
  clock_ms: number;
  missing: {servers: {shard: number}[]; workers: number[]; more_workers: number};
  readers: Reader[];
  readers_unlisted: number;
  stages: Stage[];
  stage: number;
  checkpoint_interval_seconds: number;
  workers_expected: number;
  events: RunEvent[];
}

export interface Alarm {
  level: "note"|"warning"|"alarm";
  text: string;
}
