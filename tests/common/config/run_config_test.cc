#include "common/config/run_config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "common/config/yaml_tree.h"
#include "common/model/presets.h"

namespace slipstream {
namespace {

RunSpec SpecOf(const std::string& text, const Overrides& overrides = {}) {
  const ConfigResult result = ParseRunConfig(text, "run.yaml", overrides);
  if (const auto* diagnostics = std::get_if<std::vector<Diagnostic>>(&result)) {
    ADD_FAILURE() << ToString(*diagnostics);
    return {};
  }
  return std::get<RunSpec>(result);
}

Overrides Set(std::vector<std::string> flags) {
  Overrides overrides;
  overrides.set = std::move(flags);
  return overrides;
}

TEST(RunConfigTest, ReadsTheExampleOfTheDesign) {
  const RunSpec spec = SpecOf(R"(
version: 1
name: fashion-2-softsync
seed: 7
model: {preset: lenet5}
data: {format: idx, path: ../shared/data/fashion-mnist}
training: {batch_size: 32, epochs: 5}
consistency:
  policy: softsync
  n: 2
optimizer: {kind: momentum, learning_rate: 0.05, momentum: 0.9, staleness_scaling: per_gradient}
cluster:
  servers: [localhost:7070, localhost:7071]
  workers: 4
)");

  EXPECT_EQ(spec.name, "fashion-2-softsync");
  EXPECT_EQ(spec.model, *FindPreset("lenet5"));
  EXPECT_EQ(spec.data.format, DataSpec::Format::kIdx);
  EXPECT_EQ(spec.data.path, "../shared/data/fashion-mnist");
  EXPECT_EQ(spec.training.epochs, 5u);
  EXPECT_EQ(spec.consistency.parameters["n"], 2);
  EXPECT_EQ(spec.optimizer.kind, OptimizerSpec::Kind::kMomentum);
  EXPECT_EQ(spec.optimizer.staleness_scaling, OptimizerSpec::StalenessScaling::kPerGradient);
  EXPECT_EQ(spec.cluster.servers, (std::vector<std::string>{"localhost:7070", "localhost:7071"}));
  EXPECT_EQ(spec.consistency.round_size(spec.cluster.workers), 2u);
}

TEST(RunConfigTest, KeysLeftOutKeepTheDefaultsOfTheSpec) {
  RunSpec expected;
  expected.model = *FindPreset("mlp");

  EXPECT_EQ(SpecOf("model: {preset: mlp}"), expected);
}

TEST(RunConfigTest, ReadsLayersByHand) {
  const RunSpec spec = SpecOf(R"(
model:
  input: [1, 28, 28]
  layers:
    - conv2d: {channels: 6, kernel: 5, padding: 2}
    - relu
    - max_pool: {kernel: 2, stride: 2}
    - average_pool: {kernel: 3, stride: 2, ceil: true}
    - flatten
    - dropout: {rate: 0.25}
    - lrn
    - lrn: {region: across, size: 5, alpha: 1e-4, beta: 0.5}
    - tanh
    - dense: {units: 10, init_normal: 0.01}
)");

  const std::vector<LayerSpec> expected = {
      Conv2dLayer{.channels = 6, .kernel = 5, .padding = 2},
      ReluLayer{},
      PoolLayer{},
      PoolLayer{.kind = PoolLayer::Kind::kAverage, .kernel = 3, .stride = 2, .ceil = true},
      FlattenLayer{},
      DropoutLayer{0.25f},
      LrnLayer{},
      LrnLayer{LrnLayer::Region::kAcross, 5, 1e-4f, 0.5f},
      TanhLayer{},
      DenseLayer{10, 0.01f}};
  EXPECT_EQ(spec.model.layers, expected);
  EXPECT_EQ(spec.model.preset, "");
}

TEST(RunConfigTest, FlagsOverrideTheEnvironmentWhichOverridesTheFile) {
  const std::string file = "model: {preset: mlp}\ntraining: {epochs: 2, batch_size: 2}\nseed: 2\n";
  Overrides overrides = Set({"training.epochs=3", "training.epochs=4"});
  overrides.environment = {{"PS_TRAINING_EPOCHS", "5"}, {"PS_SEED", "6"}, {"PATH", "x"}};

  const RunSpec spec = SpecOf(file, overrides);

  EXPECT_EQ(spec.training.epochs, 4u);
  EXPECT_EQ(spec.training.batch_size, 2u);
  EXPECT_EQ(spec.seed, 6u);
}

// A saved model contains its run's settings, which nobody can correct afterwards.
TEST(RunConfigTest, KeysThatMeanNothingAnyMoreAreLeftOut) {
  const RunSpec spec = SpecOf("model: {preset: mlp}\ncompute: {threads: 2, precision: bf16}\n");

  EXPECT_EQ(spec.compute.precision, Precision::kBf16);
}

TEST(RunConfigTest, VariablesOfTheProgramsAreNoKeys) {
  Overrides overrides;
  overrides.environment = {{"PS_COORDINATOR", "localhost:7070"},
                           {"PS_EVALUATE_BINARY", "bin/ps_evaluate"},
                           {"PS_LAB_BINARY", "bin/ps_lab"},
                           {"PS_SERVER_BINARY", "bin/ps_server"},
                           {"PS_WORKER", "3"},
                           {"PS_WORKER_BINARY", "bin/ps_worker"}};

  SpecOf("model: {preset: mlp}", overrides);
}

TEST(RunConfigTest, ReadsAPartOfAnotherFile) {
  DiagnosticList diagnostics;
  const auto file =
      ParseYaml("run:\n  model: {preset: mlp}\n  seed: 2\n", "grid.yaml", diagnostics);
  ASSERT_TRUE(file.has_value());
  const YamlNode& run = file->entries.at(0).value;

  EXPECT_EQ(std::get<RunSpec>(ReadRunConfig(run)).seed, 2u);
  EXPECT_EQ(std::get<RunSpec>(ReadRunConfig(run, Set({"seed=3"}))).seed, 3u);

  const auto wrong = ParseYaml("run:\n  sead: 2\n", "grid.yaml", diagnostics);
  const ConfigResult result = ReadRunConfig(wrong->entries.at(0).value);
  EXPECT_EQ(std::get<std::vector<Diagnostic>>(result).at(0).source, (Source{"grid.yaml", 2, 3}));
}

TEST(RunConfigTest, OverridesOfListsMayLeaveOutBrackets) {
  const auto servers = [](const std::string& flag) {
    return SpecOf("model: {preset: mlp}", Set({flag})).cluster.servers;
  };
  const std::vector<std::string> two = {"localhost:1", "[::1]:2"};

  EXPECT_EQ(servers("cluster.servers=localhost:1,'[::1]:2'"), two);
  EXPECT_EQ(servers("cluster.servers=[localhost:1, \"[::1]:2\"]"), two);
}

TEST(RunConfigTest, OverridesOfTextAreTakenAsTheyStand) {
  const RunSpec spec = SpecOf("model: {preset: mlp}\ndata: {format: idx, path: x}",
                              Set({"data.path=/a b/#c: [d]=e"}));

  EXPECT_EQ(spec.data.path, "/a b/#c: [d]=e");
}

TEST(RunConfigTest, AStrongerChoiceSilencesWhatTheFileSaidForAnother) {
  const std::string file = R"(
model: {preset: lenet5}
consistency: {policy: softsync, n: 2}
optimizer: {kind: momentum, momentum: 0.5}
cluster: {workers: 4}
)";
  RunSpec expected;
  expected.model = *FindPreset("lenet5");
  expected.consistency.policy = ConsistencySpec::Policy::kAsync;
  expected.cluster.workers = 4;

  EXPECT_EQ(SpecOf(file, Set({"consistency.policy=async", "optimizer.kind=sgd"})), expected);
}

TEST(RunConfigTest, AdamHasARateOfItsOwnUnlessOneIsGiven) {
  const std::string file = "model: {preset: mlp}\noptimizer: {kind: adamw, beta2: 0.95}";
  const OptimizerSpec adamw = SpecOf(file).optimizer;

  EXPECT_EQ(adamw.kind, OptimizerSpec::Kind::kAdamW);
  EXPECT_EQ(adamw.learning_rate, 0.001);
  EXPECT_EQ(adamw.parameters["beta2"], 0.95);
  EXPECT_EQ(SpecOf(file, Set({"optimizer.learning_rate=0.3"})).optimizer.learning_rate, 0.3);
  EXPECT_EQ(SpecOf("model: {preset: mlp}", Set({"optimizer.kind=adam"})).optimizer.learning_rate,
            0.001);
  EXPECT_EQ(SpecOf("model: {preset: mlp}").optimizer.learning_rate, 0.05);
}

TEST(RunConfigTest, ARateIsForTheRuleOfItsSourceOrOfAWeakerOne) {
  const std::string file = "model: {preset: mlp}\noptimizer: {kind: momentum, learning_rate: 0.2}";
  const auto rate = [&file](std::vector<std::string> flags) {
    return SpecOf(file, Set(std::move(flags))).optimizer.learning_rate;
  };

  EXPECT_EQ(rate({}), 0.2);
  EXPECT_EQ(rate({"optimizer.kind=adam"}), 0.001);
  EXPECT_EQ(rate({"optimizer.kind=adam", "optimizer.learning_rate=0.3"}), 0.3);
  EXPECT_EQ(rate({"optimizer.learning_rate=0.3", "optimizer.kind=adam"}), 0.3);
  EXPECT_EQ(rate({"optimizer.kind=momentum"}), 0.2) << "the rule is the file's";
  EXPECT_EQ(rate({"optimizer.kind=adam", "optimizer.kind=momentum"}), 0.2);
}

TEST(RunConfigTest, AStrongerAlgorithmSilencesTheOuterRuleAndWhatThatTakes) {
  constexpr char kFile[] =
      "model: {preset: mlp}\n"
      "worker: {algorithm: local_sgd, steps: 4, outer: {kind: nesterov, learning_rate: 0.7, "
      "momentum: 0.8}}\n";
  Overrides overrides;
  overrides.set = {"worker.algorithm=gradient"};
  EXPECT_EQ(SpecOf(kFile, overrides).worker, WorkerSpec());

  overrides.set = {"worker.outer.kind=sgd"};
  const RunSpec spec = SpecOf(kFile, overrides);

  EXPECT_EQ(spec.worker.quantum(), 4u);
  EXPECT_EQ(spec.server_optimizer().learning_rate, 1) << "not the rate of the file's rule";
}

TEST(RunConfigTest, AnAlgorithmBringsTheRulesThatItIsPublishedWith) {
  const RunSpec diloco = SpecOf("model: {preset: mlp}\nworker: {algorithm: diloco}");
  EXPECT_EQ(diloco.optimizer.kind, RuleKind::kAdamW);
  EXPECT_EQ(diloco.optimizer.learning_rate, 0.001);
  EXPECT_EQ(diloco.consistency.policy, PolicyKind::kHardsync);
  EXPECT_EQ(diloco.worker.outer.kind, RuleKind::kNesterov);
  EXPECT_EQ(diloco.worker.outer.learning_rate, 0.7);
  EXPECT_EQ(diloco.server_optimizer().parameters["momentum"], 0.9);

  const RunSpec fedbuff = SpecOf("model: {preset: mlp}\nworker: {algorithm: fedbuff}");
  EXPECT_EQ(fedbuff.optimizer.kind, RuleKind::kSgd);
  EXPECT_EQ(fedbuff.server_optimizer().staleness_scaling, StalenessScaling::kPolynomial);
  EXPECT_EQ(fedbuff.server_optimizer().scaling_parameters["staleness_power"], 0.5);

  const std::string easgd =
      "model: {preset: mlp}\ncluster: {workers: 4}\nworker: {algorithm: easgd}";
  EXPECT_EQ(SpecOf(easgd).consistency.policy, PolicyKind::kAsync);
  EXPECT_EQ(SpecOf(easgd).server_optimizer().learning_rate, 1);
}

TEST(RunConfigTest, GivenRulesStayWhateverTheAlgorithmBrings) {
  const RunSpec spec = SpecOf(R"(
model: {preset: mlp}
optimizer: {kind: sgd, staleness_scaling: none}
worker: {algorithm: diloco, outer: {kind: momentum}}
)");
  EXPECT_EQ(spec.optimizer.kind, RuleKind::kSgd);
  EXPECT_EQ(spec.worker.outer.kind, RuleKind::kMomentum);
  EXPECT_EQ(spec.worker.outer.learning_rate, 0.1);

  const RunSpec keys = SpecOf(R"(
model: {preset: mlp}
optimizer: {beta1: 0.8}
worker: {algorithm: diloco, outer: {momentum: 0.5}}
)");
  EXPECT_EQ(keys.optimizer.parameters["beta1"], 0.8);
  EXPECT_EQ(keys.server_optimizer().parameters["momentum"], 0.5);
}

TEST(RunConfigTest, AStrongerAlgorithmSilencesWhatAnotherBrought) {
  const std::string file = R"(
model: {preset: mlp}
optimizer: {beta1: 0.8, learning_rate: 0.0005}
worker: {algorithm: diloco, outer: {momentum: 0.5, learning_rate: 0.3}}
)";
  const RunSpec local = SpecOf(file, Set({"worker.algorithm=local_sgd"}));
  EXPECT_EQ(local.optimizer.kind, RuleKind::kSgd);
  EXPECT_EQ(local.optimizer.learning_rate, RowOf(RuleKind::kSgd).learning_rate);
  EXPECT_EQ(local.worker.outer.kind, RuleKind::kSgd);
  EXPECT_EQ(local.worker.outer.learning_rate, 1);

  const RunSpec fedbuff =
      SpecOf("model: {preset: mlp}\nworker: {algorithm: fedbuff}\noptimizer: {staleness_power: 1}",
             Set({"worker.algorithm=local_sgd"}));
  EXPECT_EQ(fedbuff.optimizer.staleness_scaling, StalenessScaling::kNone);
}

TEST(RunConfigTest, ARateIsForTheRuleThatAnAlgorithmBroughtToo) {
  const std::string file =
      "model: {preset: mlp}\nworker: {algorithm: diloco}\noptimizer: {learning_rate: 0.0005}";
  const auto rate = [&](const std::string& flag) {
    return SpecOf(file, Set({flag})).optimizer.learning_rate;
  };
  EXPECT_EQ(rate("optimizer.kind=adamw"), 0.0005);  // The rule is the same.
  EXPECT_EQ(rate("optimizer.kind=sgd"), RowOf(RuleKind::kSgd).learning_rate);

  const RunSpec diloco = SpecOf("model: {preset: mlp}\noptimizer: {learning_rate: 0.05}",
                                Set({"worker.algorithm=diloco"}));
  EXPECT_EQ(diloco.optimizer.learning_rate, RowOf(RuleKind::kAdamW).learning_rate);
}

TEST(RunConfigTest, OfTwoSizesOfARoundTheStrongerCounts) {
  const auto size = [](const std::string& keys, std::vector<std::string> flags) {
    return SpecOf("model: {preset: mlp}\ncluster: {workers: 8}\nconsistency: {" + keys + "}",
                  Set(std::move(flags)))
        .consistency.round_size(8);
  };
  EXPECT_EQ(size("c: 3", {"consistency.n=1"}), 8u);
  EXPECT_EQ(size("n: 2", {"consistency.c=3"}), 3u);
  EXPECT_EQ(size("c: 3", {"consistency.c=0", "consistency.n=2"}), 4u);
  EXPECT_EQ(size("n: 2", {"consistency.c=0"}), 4u);
}

TEST(RunConfigTest, RulesOfPushedGradientsHaveTheRatesOfGradients) {
  const RunSpec spec =
      SpecOf("model: {preset: mlp}\nworker: {algorithm: downpour, outer: {kind: sgd}}");

  EXPECT_EQ(spec.worker.outer.learning_rate, RowOf(RuleKind::kSgd).learning_rate);
}

TEST(RunConfigTest, DownpoursServersFollowScheduleAndDecay) {
  const RunSpec spec = SpecOf(R"(
model: {preset: mlp}
optimizer: {weight_decay: 0.01, schedule: {kind: cosine}}
worker: {algorithm: downpour}
)");
  EXPECT_EQ(spec.server_optimizer().kind, RuleKind::kAdagrad);
  EXPECT_EQ(spec.server_optimizer().weight_decay, 0.01);
  EXPECT_EQ(spec.server_optimizer().schedule.kind, ScheduleSpec::Kind::kCosine);
}

TEST(RunConfigTest, DownpourFetchesWithEachPushUnlessToldOtherwise) {
  const auto pushes_per_fetch = [](const std::string& keys) {
    return SpecOf("model: {preset: mlp}\nworker: {algorithm: downpour, push_every: 4" + keys + "}")
        .worker.pushes_per_fetch();
  };
  EXPECT_EQ(pushes_per_fetch(""), 1u);
  EXPECT_EQ(pushes_per_fetch(", fetch_every: 4"), 1u);
  EXPECT_EQ(pushes_per_fetch(", fetch_every: 12"), 3u);
}

TEST(RunConfigTest, FreeLanesBringAPipelineOfTwoWhereTheyApply) {
  const std::string file = "model: {preset: mlp}\nworker: {lanes: free}\n";
  EXPECT_EQ(SpecOf(file).training.pipeline_depth, 2u);
  EXPECT_EQ(SpecOf(file, Set({"worker.lanes=step"})).training.pipeline_depth, 1u);
  const RunSpec local = SpecOf(file, Set({"worker.algorithm=local_sgd"}));
  EXPECT_FALSE(local.worker.has_free_lanes());
  EXPECT_EQ(local.training.pipeline_depth, 1u);
}

TEST(RunConfigTest, AFixedRoundSizeDoesNotFollowTheWorkers) {
  const RunSpec spec =
      SpecOf("model: {preset: mlp}\nconsistency: {policy: softsync, c: 10}\ncluster: {workers: 4}");
  EXPECT_EQ(spec.consistency.round_size(4), 10u);
  EXPECT_EQ(spec.consistency.round_size(1), 10u);
}

/// The factors are Rudra's: √(λμ/B) = √(4 · 128 / 128) under hardsync, 1/n under n-softsync. Async
/// is λ-softsync.
TEST(RunConfigTest, RudrasRateFollowsTheSizeOfTheRun) {
  const auto rate = [](const std::string& consistency) {
    return SpecOf(
               "model: {preset: mlp}\ntraining: {batch_size: 128}\ncluster: {workers: 4}\n"
               "optimizer: {learning_rate: 0.5, staleness_scaling: rudra}\nconsistency: {" +
               consistency + "}")
        .server_optimizer()
        .learning_rate;
  };
  EXPECT_DOUBLE_EQ(rate("policy: hardsync"), 1);
  EXPECT_DOUBLE_EQ(rate("policy: softsync, n: 2"), 0.25);
  EXPECT_DOUBLE_EQ(rate("policy: async"), 0.125);
  EXPECT_DOUBLE_EQ(rate("policy: softsync, c: 8"), 0.5);
}

TEST(RunConfigTest, OfPresetAndLayersTheStrongerCounts) {
  const std::string layers = "model: {input: [1, 28, 28], layers: [flatten, dense: {units: 10}]}";

  EXPECT_EQ(SpecOf(layers, Set({"model.preset=mlp"})).model, *FindPreset("mlp"));

  const ModelSpec by_hand =
      SpecOf("model: {preset: mlp}",
             Set({"model.input=1,28,28", "model.layers=flatten,dense: {units: 10}"}))
          .model;
  EXPECT_EQ(by_hand, SpecOf(layers).model);
}

TEST(RunConfigTest, OverridesThatAreNotUtf8AreRefused) {
  Overrides overrides = Set({"data.format=idx",
                             "data.path=/donn\xE9"
                             "es"});
  overrides.environment = {{"PS_NAME", "caf\xE9"}};

  const ConfigResult result = ParseRunConfig("model: {preset: mlp}", "run.yaml", overrides);

  const auto* diagnostics = std::get_if<std::vector<Diagnostic>>(&result);
  ASSERT_NE(diagnostics, nullptr);
  EXPECT_EQ(ToString(*diagnostics),
            "environment PS_NAME: error: not UTF-8 (byte 0xE9)\n"
            "--set data.path=/donn\xE9"
            "es: error: not UTF-8 (byte 0xE9)\n");
}

TEST(RunConfigTest, ServersOffLoopbackNeedTheRiskAccepted) {
  const std::string file = R"(
model: {preset: mlp}
cluster: {servers: ["10.0.0.1:7070"]}
security: {plaintext: accept_the_risk}
)";

  EXPECT_TRUE(SpecOf(file).security.accept_plaintext_risk);
}

TEST(RunConfigTest, AnEndlessFileIsRefusedAndNotReadToItsEnd) {
  const ConfigResult result = LoadRunConfig("/dev/zero");

  ASSERT_TRUE(std::holds_alternative<std::vector<Diagnostic>>(result));
}

TEST(RunConfigTest, AMissingFileOrADirectoryIsOneError) {
  for (const char* path : {"no/such/run.yaml", "."}) {
    const ConfigResult result = LoadRunConfig(path);
    const auto* diagnostics = std::get_if<std::vector<Diagnostic>>(&result);
    ASSERT_NE(diagnostics, nullptr) << path;
    ASSERT_EQ(diagnostics->size(), 1u) << path;
    EXPECT_EQ(ToString(*diagnostics).find(std::string(path) + ": error: cannot open"), 0u);
  }
}

TEST(RunConfigTest, AFloodOfUnknownKeysTakesNoHintForEach) {
  // A peer may send a text of this size. A hint compares a key with all the others: hints for each
  // key took 11 s.
  std::string text = "training: {";
  while (text.size() < kYamlBytesMax - 100) text += fmt::format("key{}, ", text.size());

  const ConfigResult result = ParseRunConfig(text + "}", "run.yaml");

  const auto* wrong = std::get_if<std::vector<Diagnostic>>(&result);
  ASSERT_NE(wrong, nullptr);
  EXPECT_EQ(wrong->size(), DiagnosticList::kDiagnosticsMax + 1);
}

}  // namespace
}  // namespace slipstream
