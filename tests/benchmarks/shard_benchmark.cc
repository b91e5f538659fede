// Measures what a shard decides and keeps for each push, by policy and number of workers.
//
//   shard_benchmark [values=1000] [pushes=20000] [policy]
//
// One thread drives production's Shard: it picks one of the learners that have weights, at random,
// and lets it push a gradient that asks for the next weights. A learner holds the weights that it
// computes from, as a worker on the same machine does. Prints the microseconds of CPU time per
// push. With few values these are bookkeeping; with as many as a model has, updates come on top.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/philox.h"
#include "common/layout/shard_map.h"
#include "common/rpc/library_settings.h"
#include "server/data_plane/shard.h"
#include "tests/support/specs.h"

namespace slipstream::benchmarks {
namespace {

constexpr uint64_t kRun = 7;
constexpr uint32_t kExamples = 4;

struct Case {
  const char* name;
  PolicyKind policy;
  uint32_t bound_per_worker = 0;  // Of a guard that blocks; 0: there is none.
  StalenessScaling scaling = StalenessScaling::kNone;
};

constexpr Case kCases[] = {
    {"hardsync", PolicyKind::kHardsync},
    {"backup", PolicyKind::kBackup},
    {"1-softsync", PolicyKind::kSoftsync},
    {"1-softsync, block", PolicyKind::kSoftsync, 1},
    {"async", PolicyKind::kAsync},
    {"async, block", PolicyKind::kAsync, 4},
    {"async, delay comp.", PolicyKind::kAsync, 0, StalenessScaling::kDelayCompensated},
    {"ssp", PolicyKind::kSsp},
    {"ssp, block", PolicyKind::kSsp, 4},
    {"hogwild", PolicyKind::kHogwild},
};

constexpr uint32_t kWorkers[] = {1, 10, 30, 100, 300, 1000};

double CpuSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

RunSpec RunOf(const Case& what, uint32_t workers) {
  RunSpec run;
  run.cluster.workers = workers;
  run.consistency.policy = what.policy;
  if (what.policy == PolicyKind::kBackup) run.consistency.parameters["backups"] = workers / 10;
  if (what.bound_per_worker > 0) {
    run.consistency.max_staleness = {StalenessGuardSpec::Action::kBlock,
                                     uint64_t{what.bound_per_worker} * workers};
  }
  run.optimizer.staleness_scaling = what.scaling;
  return run;
}

/// Returns the orders that name the model, and let worker 0 bring the initial weights.
ServerOrders FirstOrders(uint64_t values, uint32_t workers) {
  const TensorLayout layout = LayoutOf({values});
  ServerOrders orders;
  orders.number = 1;
  orders.run = kRun;
  orders.phase = Phase::kInitializing;
  orders.model = ModelOrders{.layout = layout,
                             .shard_map = *ShardMap::Cut(layout, 1),
                             .batches_total = uint64_t{1} << 40,
                             .batches_per_epoch = uint64_t{1} << 40,
                             .examples_per_epoch = uint64_t{1} << 42};
  orders.view.number = ViewNumber{1};
  for (uint32_t id = 0; id < workers; ++id) {
    orders.view.members.push_back({WorkerId{id}, Incarnation{id + 1}, true});
  }
  orders.grant = 1;
  orders.initializer = {kRun, WorkerId{0}, Incarnation{1}};
  return orders;
}

/// A shard and its learners.
class Farm {
 public:
  Farm(const RunSpec& run, uint64_t values)
      : orders_(FirstOrders(values, run.cluster.workers)),
        map_(orders_.model->shard_map.fingerprint()),
        learners_(run.cluster.workers),
        gradient_(values, 1e-6f),
        shard_({.shard = ShardId{0}, .run = run}) {
    shard_.OnOrders(orders_);
    const InitializeHeader header = {orders_.initializer, orders_.grant, map_, values};
    Weights first = *shard_.BeginInitialize(header);
    PS_CHECK(shard_.FinishInitialize(header, first).ok());
    DoJobs();
    ++orders_.number;
    orders_.phase = Phase::kTraining;
    Take(shard_.OnOrders(orders_));
    for (uint32_t worker = 0; worker < learners_.size(); ++worker) Pull(worker);
  }

  void Push(uint64_t pushes) {
    for (uint64_t i = 0; i < pushes; ++i) {
      PS_CHECK(!ready_.empty());
      const auto place = random_.Below(static_cast<uint32_t>(ready_.size()));
      std::swap(ready_[place], ready_.back());
      const uint32_t worker = ready_.back();
      ready_.pop_back();
      PushOf(worker);
    }
  }

 private:
  struct Learner {
    Weights weights;
    Version base{};
    uint64_t batch = 0;
    uint64_t pushed = 0;
  };

  static CallId CallOf(uint32_t worker) { return CallId{worker + 1}; }
  Identity IdentityOf(uint32_t worker) const {
    return {kRun, WorkerId{worker}, Incarnation{worker + 1}};
  }

  void Pull(uint32_t worker) {
    const Learner& learner = learners_[worker];
    const PullRequest pull = {.identity = IdentityOf(worker),
                              .shard_map = map_,
                              .trains = true,
                              .sequence = Sequence{learner.pushed + 1},
                              .clock = WorkerClock{learner.pushed}};
    Take(shard_.Pull(CallOf(worker), pull));
  }

  void PushOf(uint32_t worker) {
    Learner& learner = learners_[worker];
    ++learner.pushed;
    PushHeader header = {.identity = IdentityOf(worker),
                         .sequence = Sequence{learner.pushed},
                         .shard_map = map_,
                         .base = learner.base,
                         .count = gradient_.size(),
                         .examples = kExamples,
                         .batches = {{learner.batch, 1}},
                         .pull = true,
                         .clock = WorkerClock{learner.pushed}};
    learner.weights.reset();
    BegunPush begun = shard_.BeginPush(header);
    PS_CHECK(!begun.refusal.has_value());
    PushAssembly push(header, begun.push, std::move(begun.draft));
    ReceivedValues::Buffer values = ReceivedValues::MakeBuffer(gradient_.size());
    std::ranges::copy(gradient_, values.to.begin());
    PS_CHECK(push.Add(0, std::move(values.values)).ok());
    Take(shard_.FinishPush(CallOf(worker), push));
    DoJobs();
  }

  void DoJobs() {
    while (shard_.has_job()) {
      ShardJob job = shard_.TakeJob();
      job.Run();
      Take(shard_.FinishJob(std::move(job)));
    }
  }

  void Take(ShardResult result) {
    for (Answer& answer : result.answers) {
      PS_CHECK(answer.refusal.ok());
      PS_CHECK(!answer.push.has_value() || !IsRefusal(answer.push->outcome));
      const auto worker = static_cast<uint32_t>(Value(answer.call)) - 1;
      answer.Settle();
      Learner& learner = learners_[worker];
      learner.weights = std::move(answer.weights);
      learner.base = answer.header->version;
      learner.batch = answer.header->work.has_value() ? answer.header->work->batches.first : 0;
      ready_.push_back(worker);
      if (answer.push.has_value()) continue;
      Take(shard_.FinishPull(answer.call, std::pair(WorkerId{worker}, Incarnation{worker + 1})));
    }
  }

  ServerOrders orders_;
  const uint64_t map_;
  std::vector<Learner> learners_;
  std::vector<uint32_t> ready_;  // Those that hold weights.
  const std::vector<float> gradient_;
  RandomStream random_{1, 1};
  Shard shard_;
};

/// Measures the cases whose names begin with `policy`.
void Measure(uint64_t values, uint64_t pushes, std::string_view policy) {
  std::printf("%-20s", "workers");
  for (const uint32_t workers : kWorkers) std::printf("%8u", workers);
  for (const Case& what : kCases) {
    if (!std::string_view(what.name).starts_with(policy)) continue;
    std::printf("\n%-20s", what.name);
    for (const uint32_t workers : kWorkers) {
      if (what.policy == PolicyKind::kBackup && workers == 1) {
        std::printf("%8s", "");
        continue;
      }
      Farm farm(RunOf(what, workers), values);
      farm.Push(2 * uint64_t{workers});
      const double begin = CpuSeconds();
      farm.Push(pushes);
      std::printf("%8.1f", 1e6 * (CpuSeconds() - begin) / static_cast<double>(pushes));
      std::fflush(stdout);
    }
  }
  std::printf("\n");
}

}  // namespace
}  // namespace slipstream::benchmarks

int main(int argc, char** argv) {
  slipstream::TuneForTransfers();  // The programs do the same.
  const int values = argc > 1 ? std::atoi(argv[1]) : 1000;
  const int pushes = argc > 2 ? std::atoi(argv[2]) : 20'000;
  if (values < 1 || pushes < 1) {
    std::fprintf(stderr, "usage: shard_benchmark [values=1000] [pushes=20000] [policy]\n");
    return 64;
  }
  slipstream::benchmarks::Measure(static_cast<uint64_t>(values), static_cast<uint64_t>(pushes),
                                  argc > 3 ? argv[3] : "");
  return 0;
}
