#include "common/config/run_text.h"

#include <gtest/gtest.h>

#include "common/base/philox.h"
#include "common/config/field_table.h"
#include "common/config/run_config.h"
#include "tests/common/config/random_run.h"

namespace slipstream {
namespace {

void ExpectReadsBack(const RunSpec& spec) {
  const std::string yaml = ToYaml(spec);
  const ConfigResult result = ParseRunConfig(yaml, "run.yaml");

  const auto* diagnostics = std::get_if<std::vector<Diagnostic>>(&result);
  ASSERT_EQ(diagnostics, nullptr) << ToString(*diagnostics) << yaml;
  ASSERT_EQ(std::get<RunSpec>(result), spec) << yaml;
  ASSERT_EQ(ToYaml(std::get<RunSpec>(result)), yaml);
  ASSERT_EQ(Fingerprint(std::get<RunSpec>(result)), Fingerprint(spec));
}

TEST(RunTextTest, CanonicalYamlReadsBackAsTheSameRun) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 0);
    ASSERT_NO_FATAL_FAILURE(ExpectReadsBack(RandomRun(random)));
  }
}

TEST(RunTextTest, AnAllReduceRunReadsBackAsTheSameRun) {
  RunSpec spec = DefaultRun();
  spec.consistency.policy = PolicyKind::kAllReduce;
  ExpectReadsBack(spec);
}

constexpr char kDefaultsWithLayers[] = R"(version: 1
name: run
seed: 1
model:
  from: settings
  input: [1, 28, 28]
  layers:
    - flatten
    - dropout: {rate: 0.1}
    - dense: {units: 10}
  loss: cross_entropy
  init: ""
  save_dir: ""
  overwrite: false
  save_every_epochs: 0
data:
  from: settings
  format: synthetic
  pixels: standardised
  train_examples: 20000
  test_examples: 4000
training:
  batch_size: 32
  epochs: 1
  max_steps: 0
  max_seconds: 0
  target_accuracy: 0
  nonfinite_max: 10
  pipeline_depth: 1
  start_from:
    checkpoint: ""
    optimizer_state: true
consistency:
  policy: softsync
  n: 1
  c: 0
  before: []
  max_staleness:
    action: none
optimizer:
  kind: sgd
  learning_rate: 0.05
  weight_decay: 0
  per_tensor: []
  clip_value: 0
  clip_norm: 0
  staleness_scaling: none
  schedule:
    kind: constant
    warmup_epochs: 0
worker:
  algorithm: gradient
  lanes: step
  save_state:
    directory: ""
    interval: 10s
cluster:
  servers: [localhost:7070]
  workers: 1
  lease: 5s
  start_timeout: 2m
  on_worker_loss: shrink
  min_workers: 1
  tree:
    fanout: 0
compute:
  device: auto
  precision: fp32
  deterministic: true
wire:
  transport: auto
  chunk_bytes: 0
  push_codec: fp32
  pull_codec: fp32
  push_bytes_max: 0
readers:
  versions_kept: 1
  on_lag: report
evaluation:
  by: workers
  every_epochs: 1
log:
  level: info
  format: text
  push_log: ""
http:
  listen: localhost:0
run:
  after: exit
  finish_timeout: 0s
durability:
  level: memory
testing:
  push_delay_max: 0s
  workers: []
security:
  plaintext: loopback_only
  mtls:
    ca: ""
    certificate: ""
    key: ""
  token: ""
)";

TEST(RunTextTest, CanonicalYamlOfTheDefaults) {
  RunSpec spec = DefaultRun();
  spec.model.preset.clear();
  spec.model.layers = {FlattenLayer{}, DropoutLayer{0.1f}, DenseLayer{10}};

  EXPECT_EQ(ToYaml(spec), kDefaultsWithLayers);
}

TEST(RunTextTest, ANetWithoutItsNameReadsBackAsTheSameNet) {
  for (const std::string_view preset : PresetNames()) {
    RunSpec spec = DefaultRun();
    spec.model = *FindPreset(preset);
    spec.model.preset.clear();
    spec.data.format = DataSpec::Format::kNpy;
    spec.data.path = "here";
    ExpectReadsBack(spec);
  }
}

TEST(RunTextTest, WorkersMayBringTheirModelAndTheirExamples) {
  const ConfigResult result = ParseRunConfig("model: {from: workers}", "run.yaml");

  const auto* diagnostics = std::get_if<std::vector<Diagnostic>>(&result);
  ASSERT_EQ(diagnostics, nullptr) << ToString(*diagnostics);
  const auto& spec = std::get<RunSpec>(result);
  EXPECT_EQ(spec.data.from, SuppliedBy::kWorkers);
  EXPECT_EQ(spec.evaluation.by, EvaluationSpec::By::kNobody);
  const std::string text = ToYaml(spec);
  EXPECT_NE(text.find("model:\n  from: workers\ndata:\n  from: workers\n  examples: 0\n"
                      "training:\n  work: handed_out\n"),
            std::string::npos)
      << text;
}

TEST(RunTextTest, PublishingBringsAllThatGoesWithIt) {
  const ConfigResult result = ParseRunConfig("worker: {algorithm: publish}", "run.yaml");

  const auto* diagnostics = std::get_if<std::vector<Diagnostic>>(&result);
  ASSERT_EQ(diagnostics, nullptr) << ToString(*diagnostics);
  const auto& spec = std::get<RunSpec>(result);
  EXPECT_EQ(spec.optimizer.kind, RuleKind::kAssign);
  EXPECT_EQ(spec.consistency.policy, PolicyKind::kAsync);
  EXPECT_EQ(spec.model_from, SuppliedBy::kWorkers);
  EXPECT_EQ(spec.data.from, SuppliedBy::kWorkers);
  EXPECT_EQ(spec.training.work, TrainingSpec::Work::kOwn);
  EXPECT_EQ(spec.evaluation.by, EvaluationSpec::By::kNobody);
  EXPECT_EQ(spec.readers.versions_kept, 2u);
  const ConfigResult again = ParseRunConfig(ToYaml(spec), "again.yaml");
  ASSERT_TRUE(std::holds_alternative<RunSpec>(again));
  EXPECT_EQ(std::get<RunSpec>(again), spec);
}

TEST(RunTextTest, AnItemOfAListHasTheSettingsThatWereGiven) {
  const ConfigResult result = ParseRunConfig(
      "model: {preset: mlp}\n"
      "optimizer:\n"
      "  per_tensor:\n"
      "    - {weight_decay: 0, match: \"*.bias\"}\n"
      "    - {match: 1.*, weight_decay: 0.5, learning_rate_factor: 0.1}\n",
      "run.yaml");

  ASSERT_TRUE(std::holds_alternative<RunSpec>(result));
  EXPECT_NE(ToYaml(std::get<RunSpec>(result))
                .find("\n  per_tensor: [{match: \"*.bias\", weight_decay: 0}, {match: \"1.*\", "
                      "weight_decay: 0.5, learning_rate_factor: 0.1}]\n"),
            std::string::npos);
}

TEST(RunTextTest, TheTemplateIsARunWithTheDefaults) {
  const ConfigResult result = ParseRunConfig(ConfigTemplate(), "run.yaml");

  const auto* diagnostics = std::get_if<std::vector<Diagnostic>>(&result);
  ASSERT_EQ(diagnostics, nullptr) << ToString(*diagnostics);
  EXPECT_EQ(std::get<RunSpec>(result), DefaultRun());
}

TEST(RunTextTest, AnotherRuleInTheTemplateHasTheRateThatFitsIt) {
  std::string text = ConfigTemplate();
  const std::string kind = "# kind: sgd";
  text.replace(text.find(kind), kind.size(), "kind: adam");

  const ConfigResult result = ParseRunConfig(text, "run.yaml");

  ASSERT_TRUE(std::holds_alternative<RunSpec>(result));
  EXPECT_EQ(std::get<RunSpec>(result).optimizer.learning_rate,
            RowOf(RuleKind::kAdam).learning_rate);
}

TEST(RunTextTest, TheTemplateNamesEveryKeyWithItsMeaning) {
  const std::string text = ConfigTemplate();

  for (const Field& field : Fields()) {
    EXPECT_NE(text.find(field.name() + ": "), std::string::npos) << field.path;
    EXPECT_NE(text.find("# " + field.doc.substr(0, 20)), std::string::npos) << field.path;
  }
}

TEST(RunTextTest, KeysOfOneMachineAreNotPartOfTheFingerprint) {
  RunSpec spec = DefaultRun();
  spec.data.format = DataSpec::Format::kIdx;
  spec.data.path = "here";
  RunSpec other = spec;
  other.data.path = "there";
  other.model_files.init = "model.safetensors";
  other.model_files.save_dir = "models";
  other.compute.precision = Precision::kBf16;
  other.compute.deterministic = false;
  other.log.level = LogSpec::Level::kDebug;
  other.log.push_log = "pushes";
  spec.durability.level = DurabilitySpec::Level::kCheckpoint;
  other.durability = spec.durability;
  other.durability.directory = "checkpoints";
  other.training.start_from.checkpoint = "/mnt/old";

  EXPECT_EQ(Fingerprint(spec), Fingerprint(other));
  EXPECT_EQ(FirstDifference(spec, other), std::nullopt);
}

TEST(RunTextTest, TheFirstDifferenceNamesTheKeyAndBothValues) {
  RunSpec a = DefaultRun();
  RunSpec b = a;
  b.consistency.parameters["n"] = 2;
  b.testing.push_delay_max = absl::Seconds(1);

  EXPECT_EQ(FirstDifference(a, b), "consistency.n is 1 against 2");
  b.consistency.policy = ConsistencySpec::Policy::kAsync;
  EXPECT_EQ(FirstDifference(a, b), "consistency.policy is softsync against async");
}

TEST(RunTextTest, ServersMayKeepTheirCheckpointsInDirectoriesOfTheirOwn) {
  const ConfigResult result = ParseRunConfig(
      "model: {preset: mlp}\n"
      "durability: {level: checkpoint, directory: /var/lib/run, interval: 500ms, keep: 2}\n",
      "run.yaml");

  ASSERT_TRUE(std::holds_alternative<RunSpec>(result));
  const auto& spec = std::get<RunSpec>(result);
  EXPECT_TRUE(spec.durability.saves());
  EXPECT_NE(ToYaml(spec).find("durability:\n  level: checkpoint\n  directory: /var/lib/run\n"
                              "  interval: 500ms\n  once: false\n  keep: 2\n"),
            std::string::npos);
  RunSpec other = spec;
  other.durability.directory = "/mnt/run";
  EXPECT_EQ(FirstDifference(spec, other), std::nullopt);
  other.durability.interval = absl::Seconds(1);
  EXPECT_EQ(FirstDifference(spec, other), "durability.interval is 500ms against 1s");
}

TEST(RunTextTest, FingerprintsDifferExactlyIfThereIsADifference) {
  RandomStream random(3, 0);
  std::vector<RunSpec> specs = {DefaultRun(), DefaultRun()};
  for (int i = 0; i < 40; ++i) specs.push_back(RandomRun(random));

  for (const RunSpec& a : specs) {
    for (const RunSpec& b : specs) {
      ASSERT_EQ(Fingerprint(a) != Fingerprint(b), FirstDifference(a, b).has_value());
    }
  }
}

TEST(RunTextTest, TheFingerprintIsTheSameOnEveryMachine) {
  EXPECT_EQ(Fingerprint(DefaultRun()), 9'656'549'672'387'436'566u) << FingerprintText(DefaultRun());
}

}  // namespace
}  // namespace slipstream
