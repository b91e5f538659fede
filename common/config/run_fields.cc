#include "common/config/run_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/encoding.h"
#include "common/base/limits.h"
#include "common/config/field_builders.h"
#include "common/config/observation_fields.h"
#include "common/config/optimizer_fields.h"
#include "common/config/security_fields.h"
#include "common/model/presets.h"
#include "common/settings/policy_rows.h"

namespace slipstream {
namespace {

using Action = StalenessGuardSpec::Action;

/// Returns the names of the values from `first` to `last`, in their order.
template <typename Enum>
std::vector<std::string> Names(std::string_view (*name)(Enum), Enum first, Enum last) {
  std::vector<std::string> names;
  for (auto value = static_cast<int>(first); value <= static_cast<int>(last); ++value) {
    names.emplace_back(name(static_cast<Enum>(value)));
  }
  return names;
}

using Table = std::vector<Field>;

void AddGeneral(Table& table) {
  table.push_back(Scalar(
      "version", "The version of this file's format.", CountType{1, 1},
      [](auto& s) -> auto& { return s.version; }));
  table.push_back(Scalar(
      "name", "The run's name, in logs and status.", TextType{TextType::Form::kName},
      [](auto& s) -> auto& { return s.name; }));
  table.push_back(Scalar(
      "seed", "Determines everything that is random in the run.", CountType{},
      [](auto& s) -> auto& { return s.seed; }));
}

void AddModelFiles(Table& table) {
  const auto worker = Field::Locality::kWorker;
  table.push_back(
      Local(worker, Scalar(
                        "model.init",
                        "A model file (safetensors) with the weights to start from; empty for "
                        "random ones.",
                        TextType{}, [](auto& s) -> auto& { return s.model_files.init; })));
  table.push_back(Local(
      worker, Scalar(
                  "model.save_dir",
                  "The directory where the worker that measures the weights saves them as "
                  "model.safetensors; empty for none. psctl run has its run directory for it.",
                  TextType{}, [](auto& s) -> auto& { return s.model_files.save_dir; })));
  table.push_back(
      Local(worker, Scalar(
                        "model.overwrite",
                        "Whether a model of another run in model.save_dir may be replaced. If not, "
                        "a worker that would have to cannot save.",
                        FlagType{}, [](auto& s) -> auto& { return s.model_files.overwrite; })));
  table.push_back(Scalar(
      "model.save_every_epochs",
      "Measures and saves weights every so many epochs, too, each as "
      "model-epoch-<epoch>.safetensors; 0: only the final ones.",
      CountType{0, kEpochsMax}, [](auto& s) -> auto& { return s.model_files.save_every_epochs; }));
}

/// Makes the keys from the one of number `first` on keys of settings that describe the net.
void OnlyWithOwnNet(Table& table, size_t first) {
  for (size_t i = first; i < table.size(); ++i) {
    table[i].condition = Condition{"model.from", {"settings"}};
  }
}

void AddModel(Table& table) {
  std::vector<std::string> presets;
  for (std::string_view name : PresetNames()) presets.emplace_back(name);
  table.push_back(Choice(
      "model.from",
      "Whether these settings describe the net, for ps_worker, or the workers bring a model of "
      "their own, as programs with the Python package do.",
      {"settings", "workers"}, [](auto& s) -> auto& { return s.model_from; }));
  table.back().has_dependent_default = true;
  const size_t first = table.size();
  Field preset = Scalar(
      "model.preset", "The name of a predefined net.", ChoiceType{presets},
      [](auto& s) -> auto& { return s.model.preset; });
  preset.example = "lenet5";
  table.push_back(preset);
  Field input = List(
      "model.input", "Channels, height and width of one example; with layers.",
      ListType{CountType{1, 65'536}, 3, 3}, [](auto& s) -> auto& { return s.model.input; });
  input.example = "[1, 28, 28]";
  table.push_back(input);
  table.push_back(Records(
      "model.layers", "The layers in order; with input, instead of preset.", LayersType{},
      [](auto& s) -> auto& { return s.model.layers; }));
  table.back().example =
      "[conv2d: {channels: 6, kernel: 5, padding: 2}, relu, max_pool: {kernel: 2, stride: 2}, "
      "flatten, dense: {units: 10}]";
  table.push_back(Choice(
      "model.loss",
      "The loss, which training makes small: cross_entropy for classes, or mse, the mean squared "
      "difference of outputs and targets (for classes: 1 for the class, 0 for others).",
      {"cross_entropy", "mse"}, [](auto& s) -> auto& { return s.model.loss; }));
  AddModelFiles(table);
  OnlyWithOwnNet(table, first);
}

void AddData(Table& table) {
  table.push_back(Choice(
      "data.from",
      "Whether ps_worker reads or generates the examples, as these settings say, or the workers "
      "bring their own. If the model is the workers', so are the examples.",
      {"settings", "workers"}, [](auto& s) -> auto& { return s.data.from; }));
  table.back().has_dependent_default = true;
  table.push_back(Only(
      "data.from", {"workers"}, "",
      Scalar(
          "data.examples",
          "The number of examples of an epoch; 0 for as many as the first worker says it has, or "
          "with training.work own, for all that training.max_steps lets pass.",
          CountType{0, kExamplesMax}, [](auto& s) -> auto& { return s.data.examples; })));
  table.push_back(Choice(
      "data.format",
      "Generated examples, or files: idx as MNIST and Fashion-MNIST publish them, CIFAR-10's "
      "binary version, npy as NumPy saves arrays (X_train.npy, y_train.npy, X_test.npy, "
      "y_test.npy), csv with numbers (train.csv, test.csv).",
      {"synthetic", "idx", "cifar10", "npy", "csv"},
      [](auto& s) -> auto& { return s.data.format; }));
  table.back().condition = Condition{"data.from", {"settings"}};
  table.push_back(Only(
      "data.format", {"idx", "cifar10", "npy", "csv"}, "data/fashion-mnist",
      Local(Field::Locality::kWorker, Scalar(
                                          "data.path", "The directory with the files.", TextType{},
                                          [](auto& s) -> auto& { return s.data.path; }))));
  table.push_back(Only(
      "data.format", {"synthetic", "idx", "cifar10"}, "",
      Choice(
          "data.pixels",
          "The values made of pixels from 0 to 255. standardised: about 0, with deviation 1. "
          "mean_subtracted: pixels less the mean of their channel, as cuda-convnet has it. raw: as "
          "they are.",
          {"standardised", "mean_subtracted", "raw"},
          [](auto& s) -> auto& { return s.data.pixels; })));
  table.push_back(Only(
      "data.format", {"csv"}, "",
      Choice(
          "data.header",
          "Whether the first line of train.csv and test.csv has the names of the columns; with "
          "auto the line tells, and one that does not is refused.",
          {"auto", "true", "false"}, [](auto& s) -> auto& { return s.data.header; })));
  table.push_back(Only(
      "data.format", {"csv"}, "[price]",
      List(
          "data.label_columns",
          "Names of the columns with the class, or with the targets of mse; the last column if "
          "empty.",
          ListType{TextType{}, 0, 1024}, [](auto& s) -> auto& { return s.data.label_columns; })));
  table.push_back(
      Only("data.format", {"synthetic"}, "",
           Scalar(
               "data.train_examples", "The number of examples generated for training.",
               CountType{100, 1'000'000}, [](auto& s) -> auto& { return s.data.train_examples; })));
  table.push_back(
      Only("data.format", {"synthetic"}, "",
           Scalar(
               "data.test_examples", "The number of examples generated for evaluation.",
               CountType{100, 1'000'000}, [](auto& s) -> auto& { return s.data.test_examples; })));
}

void AddTraining(Table& table) {
  table.push_back(
      Only("data.from", {"workers"}, "",
           Choice(
               "training.work",
               "handed_out: servers name the mini-batches, so that an epoch has each example once, "
               "whoever comes and goes. own: workers choose their examples, and servers only count "
               "mini-batches.",
               {"handed_out", "own"}, [](auto& s) -> auto& { return s.training.work; })));
  table.back().has_dependent_default = true;
  table.push_back(Scalar(
      "training.batch_size", "The number of examples in one mini-batch of one worker (μ).",
      CountType{1, 65'536}, [](auto& s) -> auto& { return s.training.batch_size; }));
  table.push_back(Scalar(
      "training.epochs", "The number of passes over the training data.", CountType{1, kEpochsMax},
      [](auto& s) -> auto& { return s.training.epochs; }));
  table.push_back(Scalar(
      "training.max_steps",
      "Ends the run after so many worker steps (mini-batches pushed by all workers together); 0 "
      "for no limit.",
      CountType{0, kStepsMax}, [](auto& s) -> auto& { return s.training.max_steps; }));
  table.push_back(Scalar(
      "training.max_seconds", "Ends the run after this time of training; 0 for no limit.",
      NumberType{.max = 1e9}, [](auto& s) -> auto& { return s.training.max_seconds; }));
  table.push_back(Scalar(
      "training.target_accuracy",
      "Ends the run when an evaluation reaches this share of the test set; 0 for none.",
      NumberType{.max = 1}, [](auto& s) -> auto& { return s.training.target_accuracy; }));
  table.push_back(Scalar(
      "training.nonfinite_max",
      "Ends the run after so many mini-batches in a row of one worker whose loss or gradient is "
      "not finite; fewer are left out.",
      CountType{1, 1'000'000'000}, [](auto& s) -> auto& { return s.training.nonfinite_max; }));
  table.push_back(Scalar(
      "training.pipeline_depth",
      "The number of gradients that a worker has under way: with 2 it computes the next one while "
      "one is pushed, from weights one step older. 1 with policies without stale gradients; 2 with "
      "worker.lanes free.",
      CountType{1, 2}, [](auto& s) -> auto& { return s.training.pipeline_depth; }));
  table.back().has_dependent_default = true;
  table.push_back(
      Local(Field::Locality::kServer,
            Scalar(
                "training.start_from.checkpoint",
                "The directory of another run's checkpoints, whose newest weights the run begins "
                "with; empty to begin with those of a worker. Any number of servers may have made "
                "them; each server of this run reads its part.",
                TextType{}, [](auto& s) -> auto& { return s.training.start_from.checkpoint; })));
  table.push_back(Scalar(
      "training.start_from.optimizer_state",
      "Whether the optimizer goes on from its state in that checkpoint, too, which needs the same "
      "optimizer.kind; false begins with the weights alone.",
      FlagType{}, [](auto& s) -> auto& { return s.training.start_from.optimizer_state; }));
}

void AddConsistency(Table& table) {
  table.push_back(RowChoice(
      "consistency.policy",
      "Decides when gradients become an update; worker.algorithm may bring another default.",
      kPolicyRows, [](auto& s) -> auto& { return s.consistency.policy; }));
  table.back().has_dependent_default = true;
  AddParameters(
      table, "consistency.policy", kPolicyRows, kPolicyParameters,
      [](auto& s) -> auto& { return s.consistency.parameters; });
  table.push_back(Records(
      "consistency.before",
      "The policies of the first epochs, each until the end of an epoch; the policy of this "
      "section "
      "follows them. The same as a list of policies in place of the section. Those whose rounds "
      "wait for all members come first, and max_staleness holds for all.",
      StagesType{}, [](auto& s) -> auto& { return s.policies_before; }));
  table.push_back(Choice(
      "consistency.max_staleness.action",
      "The treatment of a gradient beyond the bound: reject has its worker compute anew, block "
      "makes "
      "rounds wait so that there is none, scale multiplies it by bound/staleness, drop ignores it.",
      Names(ActionName, Action::kNone, Action::kDrop),
      [](auto& s) -> auto& { return s.consistency.max_staleness.action; }));
  table.push_back(Only(
      "consistency.max_staleness.action", Names(ActionName, Action::kReject, Action::kDrop), "16",
      Scalar(
          "consistency.max_staleness.bound", "The largest staleness that a gradient may have.",
          CountType{0, 1'000'000},
          [](auto& s) -> auto& { return s.consistency.max_staleness.bound; })));
}

void AddCluster(Table& table) {
  table.push_back(List(
      "cluster.servers",
      "host:port of each server in the order of shards; the first hosts the "
      "coordinator.",
      ListType{TextType{}, 1, kServersMax}, [](auto& s) -> auto& { return s.cluster.servers; }));
  table.push_back(Scalar(
      "cluster.workers", "The number of workers at the start of the run (λ).",
      CountType{1, kWorkersMax}, [](auto& s) -> auto& { return s.cluster.workers; }));
  table.push_back(Scalar(
      "cluster.lease",
      "A worker that is silent for this long is dead. Shorter detects faster and "
      "evicts busy nodes.",
      DurationType{absl::Milliseconds(500), absl::Hours(1)},
      [](auto& s) -> auto& { return s.cluster.lease; }));
  table.push_back(Scalar(
      "cluster.start_timeout",
      "The run fails if servers and workers have not all come within this time.",
      DurationType{absl::Seconds(1), absl::Hours(24)},
      [](auto& s) -> auto& { return s.cluster.start_timeout; }));
  table.push_back(Choice(
      "cluster.on_worker_loss",
      "What follows if a worker is gone while a policy waits for it. shrink: the next rounds do "
      "without it; wait: training waits until another worker takes its place, and fails if none "
      "comes within start_timeout.",
      {"shrink", "wait"}, [](auto& s) -> auto& { return s.cluster.on_worker_loss; }));
  table.push_back(Scalar(
      "cluster.min_workers",
      "If fewer workers than these are left for longer than start_timeout, servers save what they "
      "have (durability.level), and the run fails.",
      CountType{1, kWorkersMax}, [](auto& s) -> auto& { return s.cluster.min_workers; }));
  table.push_back(Scalar(
      "cluster.tree.fanout",
      "The number of workers, 2 or more, whose pushes an aggregator adds up on their way to each "
      "server, so that one push arrives for all; 0: workers push to the servers themselves.",
      CountType{0, kFanoutMax}, [](auto& s) -> auto& { return s.cluster.tree.fanout; }));
}

void AddCompute(Table& table) {
  const auto worker = Field::Locality::kWorker;
  table.push_back(Local(
      worker,
      Scalar(
          "compute.device",
          "The device that computes gradients: auto is a GPU where there is one and ps_worker "
          "was built for it, else the processor; with cuda the workers of a machine share out its "
          "GPUs.",
          TextType{TextType::Form::kDevice}, [](auto& s) -> auto& { return s.compute.device; })));
  table.push_back(Local(
      worker,
      Choice(
          "compute.precision",
          "Of the products in gradients: bf16 is faster on GPUs and on processors that have it "
          "(AVX-512 BF16, AMX), and its gradients are off by a few percent; tf32 is of GPUs. "
          "Evaluations are in fp32.",
          {"fp32", "bf16", "tf32"}, [](auto& s) -> auto& { return s.compute.precision; })));
  table.push_back(Local(
      worker,
      Scalar(
          "compute.deterministic",
          "Equal inputs give equal bits on GPUs of one kind. false lets cuDNN take what is fastest "
          "for convolutions, also what adds in any order or loses digits.",
          FlagType{}, [](auto& s) -> auto& { return s.compute.deterministic; })));
}

void AddWire(Table& table) {
  const auto worker = Field::Locality::kWorker;
  table.push_back(Local(
      worker,
      Choice(
          "wire.transport",
          "How a worker reaches shards: auto is shm where both are on one machine, and tcp "
          "elsewhere.",
          {"auto", "tcp", "unix", "shm"}, [](auto& s) -> auto& { return s.wire.transport; })));
  table.push_back(Scalar(
      "wire.chunk_bytes",
      "Payload of one message, were it fp32; 0 leaves it to the size of shards, from 512 KiB to 2 "
      "MiB. With push_codec int8, onebit, twobit or topk it is rounded down to a multiple of 4 "
      "KiB.",
      BytesType{
          .min = kChunkBytesMin, .max = kChunkBytesMax, .multiple_of = 64, .takes_zero = true},
      [](auto& s) -> auto& { return s.wire.chunk_bytes; }));
  table.push_back(RowChoice(
      "wire.push_codec", "How gradients are encoded on their way.", kEncodingRows,
      [](auto& s) -> auto& { return s.wire.push_codec; }));
  std::vector<EncodingRow> of_weights;
  std::ranges::copy_if(kEncodingRows, std::back_inserter(of_weights),
                       &EncodingRow::carries_weights);
  table.push_back(RowChoice(
      "wire.pull_codec",
      "How weights travel that gradients are computed from; servers, evaluations and saved models "
      "keep fp32.",
      of_weights, [](auto& s) -> auto& { return s.wire.pull_codec; }));
  table.push_back(Scalar(
      "wire.push_bytes_max",
      "Pushes that a shard holds before it asks workers to retry later; 0 for as many as workers "
      "may have on their way.",
      BytesType{0, uint64_t{1} << 40, 1}, [](auto& s) -> auto& { return s.wire.push_bytes_max; }));
}

void AddReadersAndEvaluation(Table& table) {
  table.push_back(Scalar(
      "readers.versions_kept",
      "The number of newest versions of the weights that servers keep for readers, each in memory "
      "of its own. A reader that takes longer than they stay gets LAGGED, and takes a newer one.",
      CountType{1, kVersionsKeptMax}, [](auto& s) -> auto& { return s.readers.versions_kept; }));
  table.back().has_dependent_default = true;
  table.push_back(Choice(
      "readers.on_lag",
      "What follows if a reader is as many versions behind as it wants to be at most (max_lag). "
      "report: the status shows it; wait: workers also wait until it has read on, or is gone.",
      {"report", "wait"}, [](auto& s) -> auto& { return s.readers.on_lag; }));
  table.push_back(Choice(
      "evaluation.by",
      "Whether workers measure the weights, the final ones in any case, or nobody does. nobody if "
      "the examples are the workers'.",
      {"workers", "nobody"}, [](auto& s) -> auto& { return s.evaluation.by; }));
  table.back().has_dependent_default = true;
  table.push_back(Only(
      "evaluation.by", {"workers"}, "",
      Scalar(
          "evaluation.every_epochs",
          "Measures accuracy on the test set every so many epochs; 0: only at the end.",
          CountType{0, kEpochsMax}, [](auto& s) -> auto& { return s.evaluation.every_epochs; })));
}

void AddDurability(Table& table) {
  const std::string level = "durability.level";
  const std::vector<std::string> saving = {"checkpoint", "synced"};
  table.push_back(Choice(
      level,
      "The state that survives the end of a server. memory: none, and the run fails. checkpoint: "
      "servers save their state at intervals, and one that is started again goes on from its last "
      "checkpoint; later updates are lost. synced: a log beside the checkpoints has each push on "
      "the disk before it is answered, so nothing is lost; answers wait for the disk.",
      {"memory", "checkpoint", "synced"}, [](auto& s) -> auto& { return s.durability.level; }));
  table.push_back(Only(
      level, saving, "checkpoints",
      Local(Field::Locality::kServer,
            Scalar(
                "durability.directory",
                "The directory for the checkpoints of the server, and its log, the same each time "
                "that it is started. Servers may share one. By psctl run: in its run directory.",
                TextType{}, [](auto& s) -> auto& { return s.durability.directory; }))));
  table.push_back(Only(level, saving, "",
                       Scalar(
                           "durability.interval", "The time from one checkpoint to the next.",
                           DurationType{absl::Milliseconds(100), absl::Hours(24)},
                           [](auto& s) -> auto& { return s.durability.interval; })));
  table.push_back(
      Only(level, saving, "",
           Scalar(
               "durability.once",
               "Whether a run that has finished stays so when its servers are started again, for "
               "example after a reboot. If not, they begin a new run.",
               FlagType{}, [](auto& s) -> auto& { return s.durability.once; })));
  table.push_back(Only(
      level, saving, "",
      Scalar(
          "durability.keep",
          "How many of its newest checkpoints a server keeps; 2 or more, as one may be damaged.",
          CountType{2, 100}, [](auto& s) -> auto& { return s.durability.keep; })));
}

void AddOperation(Table& table) {
  table.push_back(Choice(
      "run.after", "Whether servers exit when the run is over, or stay to serve pulls and status.",
      {"exit", "stay"}, [](auto& s) -> auto& { return s.run.after; }));
  table.push_back(Scalar(
      "run.finish_timeout",
      "psctl run kills workers that go on for longer after the run, and fails. 0: 10s for "
      "ps_worker, and no limit for programs of yours, which may evaluate or save.",
      DurationType{absl::ZeroDuration(), absl::Hours(24)},
      [](auto& s) -> auto& { return s.run.finish_timeout; }));
  AddDurability(table);
  table.push_back(Scalar(
      "testing.push_delay_max",
      "A fault for tests: each worker waits a random time up to this before each push.",
      DurationType{absl::ZeroDuration(), absl::Seconds(10)},
      [](auto& s) -> auto& { return s.testing.push_delay_max; }));
  table.push_back(Records(
      "testing.workers",
      "Slows workers, by id, for experiments with uneven machines: delay is added to each "
      "mini-batch, and slower makes computing it take so many times as long. [{}, {delay: 20ms}, "
      "{slower: 4}] leaves worker 0 as it is, and those from 3 on.",
      SlowdownsType{}, [](auto& s) -> auto& { return s.testing.workers; }));
  AddSecurityFields(table);
}

}  // namespace

std::vector<Field> RunFields() {
  Table table;
  AddGeneral(table);
  AddModel(table);
  AddData(table);
  AddTraining(table);
  AddConsistency(table);
  AddOptimizerFields(table);
  AddCluster(table);
  AddCompute(table);
  AddWire(table);
  AddReadersAndEvaluation(table);
  AddObservationFields(table);
  AddOperation(table);
  return table;
}

}  // namespace slipstream
