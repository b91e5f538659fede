#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMMAND_EXAMPLES_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMMAND_EXAMPLES_H_

namespace slipstream {

// The last part of the help of psctl and of each of its commands.

inline constexpr char kFooter[] =
    "Examples:\n"
    "  psctl config init run.yaml\n"
    "  psctl validate run.yaml\n"
    "  psctl run run.yaml --set cluster.workers=4\n"
    "  psctl evaluate runs/demo-20260301T123005Z\n"
    "  psctl compare runs/demo-*/\n"
    "  psctl status --coordinator localhost:7070\n"
    "\n"
    "Exit codes: 0 done, 1 internal error, 2 usage, 69 peer unreachable, 71 a server's log not\n"
    "written, 74 input or output, 75 temporary failure, 78 configuration, 79 saved: start it "
    "again,\n"
    "80 the run failed, 81 training diverged, 82 a grid does not reproduce its reference, 130, 143 "
    "and 129 after\n"
    "SIGINT, SIGTERM and SIGHUP (psctl run saves the weights before).";

inline constexpr char kRunExamples[] =
    "Examples:\n"
    "  psctl run run.yaml\n"
    "  psctl run run.yaml --set training.epochs=3 --set cluster.workers=8\n"
    "  psctl run run.yaml -o json >result.json\n"
    "  psctl run run.yaml --run-dir runs/first --push-log\n"
    "  psctl run run.yaml --restart --set durability.level=synced\n"
    "  psctl run run.yaml -- python3 train.py --verbose\n"
    "\n"
    "What follows -- is a program that each worker runs instead of ps_worker. In its environment\n"
    "SLIPSTREAM_COORDINATOR names server 0, SLIPSTREAM_WORKER is the worker's id, and\n"
    "SLIPSTREAM_RUN_DIR the run directory, where logs/worker-0.log and so on have what it prints.";

inline constexpr char kNodeExamples[] =
    "Examples:\n"
    "  srun psctl node run.yaml --restart\n"
    "  mpirun -n 3 psctl node run.yaml --run-dir /shared/demo\n"
    "  psctl node run.yaml --rank 1 --size 3 --run-dir /shared/demo --workers-per-node 2,4,1\n"
    "  srun psctl node run.yaml -- python3 train.py\n"
    "\n"
    "After SIGUSR1 or SIGTERM it has its servers save, and ends with 79: started again on all "
    "nodes,\n"
    "the run goes on. That takes durability.level checkpoint or synced.";

inline constexpr char kSlurmExamples[] =
    "Examples:\n"
    "  psctl slurm run.yaml --nodes 3 --dry-run\n"
    "  psctl slurm run.yaml --nodes 3 --workers-per-node 2,4,1 --sbatch=--time=60\n"
    "  psctl slurm run.yaml --nodes 2 --set durability.level=synced -- python3 train.py";

inline constexpr char kValidateExamples[] =
    "Examples:\n"
    "  psctl validate run.yaml\n"
    "  psctl validate run.yaml --set consistency.n=2 -o json";

inline constexpr char kInitExamples[] =
    "Examples:\n"
    "  psctl config init\n"
    "  psctl config init big.yaml --force\n"
    "  psctl config init - | less";

inline constexpr char kShowExamples[] =
    "Examples:\n"
    "  psctl config show run.yaml\n"
    "  psctl config show run.yaml --set seed=3 -o json";

inline constexpr char kEvaluateExamples[] =
    "Examples:\n"
    "  psctl evaluate runs/demo-20260301T123005Z\n"
    "  psctl evaluate model.safetensors --set data.path=/data/fashion-mnist -o json";

inline constexpr char kLabRunExamples[] =
    "Examples:\n"
    "  psctl lab run deploy/examples/lab.yaml --dry-run\n"
    "  psctl lab run deploy/examples/lab.yaml\n"
    "  psctl lab run grid.yaml --dir runs/second --only failed\n"
    "Cells that have a result are not run again: stop it and go on at any time. Exit codes: 80 if\n"
    "cells failed, 81 if one diverged with on_divergence: fail, 82 if the results are not those "
    "of\n"
    "the grid's reference.";

inline constexpr char kLabStatusExamples[] =
    "Examples:\n"
    "  psctl lab status grid.yaml\n"
    "  psctl lab status grid.yaml -o json | jq '.cells[].status'";

inline constexpr char kLabReportExamples[] =
    "Examples:\n"
    "  psctl lab report grid.yaml\n"
    "It leaves results.csv, results.jsonl, curves.csv, sigma.csv, report.md and report.html in "
    "the\n"
    "lab directory.";

inline constexpr char kLabReplayExamples[] =
    "Examples:\n"
    "  psctl run run.yaml --push-log --run-dir runs/one\n"
    "  psctl lab replay runs/one\n"
    "  psctl lab replay runs/one --set optimizer.staleness_scaling=per_gradient\n"
    "It prints one JSON object, and exits with 0 if the weights are the run's, bit for bit.";

inline constexpr char kCompareExamples[] =
    "Examples:\n"
    "  psctl compare runs/async-*/ runs/hardsync-*/\n"
    "  psctl compare runs/*/ -o json | jq '.groups[].seconds.mean'\n"
    "Runs whose settings differ only in the seed are one line, each figure as mean ± its 95 %\n"
    "confidence interval (Student's t).";

inline constexpr char kPlotExamples[] =
    "Examples:\n"
    "  psctl plot runs/demo-20260301T123005Z\n"
    "  psctl plot runs/async-*/ runs/hardsync-*/ --output policies.svg";

inline constexpr char kPlanExamples[] =
    "Examples:\n"
    "  psctl plan run.yaml\n"
    "  psctl plan run.yaml --sweep workers=1..64 --link-bandwidth 1Gbit --link-latency 50us\n"
    "  psctl plan --check runs/demo-20260301T123005Z\n"
    "What no flag and no --from tells is measured first, in six seconds or so. A link that is "
    "given\n"
    "is one between machines, one for each worker and server; --processors 2 puts all on one.";

inline constexpr char kSchemaExamples[] =
    "Examples:\n"
    "  psctl config schema >run.schema.json\n"
    "An editor that knows the YAML language server checks a file that begins with\n"
    "  # yaml-language-server: $schema=run.schema.json";

inline constexpr char kCompletionExamples[] =
    "Examples:\n"
    "  source <(psctl completion bash)\n"
    "  psctl completion fish | source";

inline constexpr char kStatusExamples[] =
    "Examples:\n"
    "  psctl status --coordinator localhost:7070\n"
    "  psctl status --coordinator localhost:7070 --watch --interval 500ms --wait 10m\n"
    "  psctl status --coordinator localhost:7070 --watch -o json | jq .updates";

inline constexpr char kEventsExamples[] =
    "Examples:\n"
    "  psctl events --coordinator localhost:7070\n"
    "  psctl events --coordinator localhost:7070 --follow --wait 10m\n"
    "  psctl events --coordinator localhost:7070 -o json | jq 'select(.is_warning)'\n"
    "\n"
    "Lines that begin with ! after the kind are warnings. Where events are not kept any more, a\n"
    "line says how many.";

inline constexpr char kStopExamples[] =
    "Examples:\n"
    "  psctl stop --coordinator localhost:7070\n"
    "Each worker pushes the mini-batch it is at; the final weights are measured and saved as at\n"
    "any other end, and the run's ended_by is \"interrupted\".";

inline constexpr char kDrainExamples[] =
    "Examples:\n"
    "  psctl drain --coordinator localhost:7070 --server 1\n"
    "  psctl drain --coordinator ps-0:7070 --ca certs/ca.crt\n"
    "Each server ends as after SIGTERM, with exit code 0. It saves or syncs what it has, and the\n"
    "run goes on once it is started again (durability.level: checkpoint or synced). With level\n"
    "memory its weights are lost, and the run fails.";

inline constexpr char kPolicySetExamples[] =
    "Examples:\n"
    "  psctl policy set softsync --n 2 --coordinator localhost:7070\n"
    "  psctl policy set ssp --slack 4 --coordinator localhost:7070\n"
    "softsync, async and ssp take over from each other at once, and from hardsync and backup at "
    "the\n"
    "end of an epoch. The new policy is for the rest of the run.";

inline constexpr char kSetExamples[] =
    "Examples:\n"
    "  psctl set optimizer.learning_rate=0.01 --coordinator localhost:7070\n"
    "  psctl set consistency.policy=softsync consistency.c=4 --coordinator localhost:7070\n"
    "A schedule goes on from the new rate. Under hardsync and backup a change holds from the end "
    "of\n"
    "an epoch on.";

inline constexpr char kPullExamples[] =
    "Examples:\n"
    "  psctl pull model.safetensors --coordinator localhost:7070\n"
    "  psctl pull newest.safetensors --coordinator ps-0:7070 --ca certs/ca.crt --force\n"
    "The file is written whole or not at all, and the run does not wait for it. psctl evaluate\n"
    "FILE --config RUN.YAML measures it.";

inline constexpr char kCertsInitExamples[] =
    "Examples:\n"
    "  psctl certs init certs --config run.yaml\n"
    "  psctl certs init certs --run mnist --hosts ps-0+10.0.0.5,ps-1 --workers 8\n"
    "Each machine gets ca.crt and the files of its own member; ca.key stays where it is made.";

inline constexpr char kCheckpointListExamples[] =
    "Examples:\n"
    "  psctl checkpoint ls checkpoints\n"
    "  psctl checkpoint ls checkpoints/00c0ffee00c0ffee -o json\n"
    "DIR is a run's durability.directory, or one below it. on all shards says whether every shard\n"
    "that has its checkpoints there has this version.";

inline constexpr char kCheckpointVerifyExamples[] =
    "Examples:\n"
    "  psctl checkpoint verify checkpoints\n"
    "  psctl checkpoint verify checkpoints --replay\n"
    "The exit code is 74 if anything is damaged or differs; each place is named. --replay is for\n"
    "runs with durability.level synced. It needs the memory of a shard, and the coordinator.state\n"
    "of server 0 in DIR.";

inline constexpr char kCheckpointInspectExamples[] =
    "Examples:\n"
    "  psctl checkpoint inspect checkpoints/00c0ffee00c0ffee/shard-0/checkpoint-0-1200";

inline constexpr char kCheckpointExportExamples[] =
    "Examples:\n"
    "  psctl checkpoint export checkpoints --out model.safetensors\n"
    "  psctl checkpoint export checkpoints/00c0ffee00c0ffee --out old.safetensors --version 1200\n"
    "psctl evaluate FILE --config RUN.YAML measures the file, and model.init begins a run with it.";

inline constexpr char kCheckpointSaveExamples[] =
    "Examples:\n"
    "  psctl checkpoint save --coordinator localhost:7070\n"
    "  psctl checkpoint save --coordinator ps-0:7070 --ca certs/ca.crt --timeout 10m\n"
    "It prints a line for each shard. The exit code is 75 if not all have saved within the time.";

inline constexpr char kCheckpointReshardExamples[] =
    "Examples:\n"
    "  psctl checkpoint reshard checkpoints --servers 4 --output for-four\n"
    "A new run begins with the result: training.start_from.checkpoint. It reads checkpoints of "
    "any\n"
    "number of servers; this command is for servers that have a disk of their own each.";

inline constexpr char kDoctorExamples[] =
    "Examples:\n"
    "  psctl doctor --coordinator localhost:7070\n"
    "  psctl doctor --coordinator ps-0:7070 --ca certs/ca.crt\n"
    "  psctl doctor --coordinator ps-0:7070 --ca certs/ca.crt --certificate certs/worker-3.crt "
    "--key certs/worker-3.key";

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMMAND_EXAMPLES_H_
