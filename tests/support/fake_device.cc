#include "tests/support/fake_device.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/mutex.h"
#include "common/model/net_shapes.h"
#include "worker/compute/batch_check.h"

namespace slipstream {
namespace {

/// Runs the functions added to it one after another, on its own thread.
///
/// Thread-safe: guarded by its own mutex.
class Queue {
 public:
  Queue() : thread_([this] { Work(); }) {}

  ~Queue() {
    Add(nullptr);
    thread_.join();
  }

  void Add(std::function<void()> work) {
    MutexLock lock(mutex_);
    work_.push_back(std::move(work));
    changed_.NotifyAll();
  }

  /// Waits until everything queued so far is done.
  void Drain() {
    bool done = false;
    Add([&] {
      MutexLock lock(mutex_);
      done = true;
      changed_.NotifyAll();
    });
    MutexLock lock(mutex_);
    while (!done) changed_.Wait(mutex_);
  }

 private:
  void Work() {
    while (const std::function<void()> work = Next()) work();
  }

  std::function<void()> Next() {
    MutexLock lock(mutex_);
    while (work_.empty()) changed_.Wait(mutex_);
    std::function<void()> next = std::move(work_.front());
    work_.pop_front();
    return next;
  }

  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> work_ ABSL_GUARDED_BY(mutex_);  // An empty one ends the thread.
  std::thread thread_;
};

class FakePlan final : public Plan {
 public:
  FakePlan(std::unique_ptr<Plan> device, const NetSizes& net, uint32_t batch_size_max,
           bool keeps_examples)
      : device_(std::move(device)),
        net_(net),
        batch_size_max_(batch_size_max),
        keeps_examples_(keeps_examples),
        weights_(device_->weights_host().size(), std::numeric_limits<float>::quiet_NaN()),
        gradients_(device_->gradients_host().size()) {
    // Reserve the memory once, so that the addresses stay valid: a step may look for its batch here
    // while the next batch is filled in.
    for (Values& values : staged_) values.examples.reserve(batch_size_max * net.inputs);
    // The weights are undefined until they arrive, like an accelerator's memory.
    std::fill(device_->weights_host().begin(), device_->weights_host().end(),
              std::numeric_limits<float>::quiet_NaN());
  }

  std::span<float> weights_host() override { return weights_; }

  void WeightsArrived(ParameterRange range) override {
    copies_.Add([this, range] {
      const auto from = std::span(weights_).subspan(range.begin, range.size());
      const auto to = device_->weights_host().subspan(range.begin, range.size());
      std::copy(from.begin(), from.end(), to.begin());
      device_->WeightsArrived(range);
    });
  }

  void ExpectWeights() override {
    copies_.Drain();
    device_->ExpectWeights();
  }

  void RevokeWeights(ParameterRange range) override {
    copies_.Drain();
    device_->RevokeWeights(range);
  }

  void AbandonWeights() override { device_->AbandonWeights(); }

  std::span<float> gradients_host() override { return gradients_; }

  bool KeepExamples(const ExampleTable& table) override {
    if (!keeps_examples_) return false;
    kept_.examples.resize(table.values);
    table.read(0, kept_.examples);
    kept_.labels.assign(table.labels.begin(), table.labels.end());
    kept_.targets.assign(table.targets.begin(), table.targets.end());
    return true;
  }

  std::optional<BatchSpace> NewBatch(uint32_t count) override {
    newest_ = 1 - newest_;
    Values& values = staged_[newest_];
    const bool has_labels = net_.loss == ModelSpec::Loss::kCrossEntropy;
    values.examples.assign(count * net_.inputs, std::numeric_limits<float>::quiet_NaN());
    values.labels.resize(has_labels ? count : 0);
    values.targets.resize(has_labels ? 0 : count * net_.outputs);
    return BatchSpace{values.examples, values.labels, values.targets};
  }

  void OfferBatch() override { sent_[newest_] = staged_[newest_]; }

  absl::Status StartStep(const Batch& batch, GradientListener* listener) override {
    const size_t kept = kept_.examples.size() / net_.inputs;
    const auto count = CheckBatch(net_, batch_size_max_, batch, kept);
    if (!count.ok()) return count.status();
    copies_.Drain();
    step_.emplace(absl::UnknownError("the step has not run"));
    queue_.Add([this, batch = OnDevice(batch), listener] {
      CopyingListener copying(*this, listener);
      const absl::Status started = device_->StartStep(batch, &copying);
      step_ = started.ok() ? device_->FinishStep() : absl::StatusOr<StepResult>(started);
    });
    return absl::OkStatus();
  }

  absl::StatusOr<StepResult> FinishStep() override {
    if (!step_.has_value()) return absl::FailedPreconditionError("no step was started");
    queue_.Drain();
    return *std::exchange(step_, std::nullopt);
  }

  absl::StatusOr<StepResult> Evaluate(const Batch& batch) override {
    copies_.Drain();
    absl::StatusOr<StepResult> result = absl::UnknownError("the evaluation has not run");
    queue_.Add([&] { result = device_->Evaluate(OnDevice(batch)); });
    queue_.Drain();
    return result;
  }

 private:
  /// The values of one batch.
  struct Values {
    std::vector<float> examples;
    std::vector<uint32_t> labels;
    std::vector<float> targets;
  };

  /// Returns the values that the device computes from.
  Batch OnDevice(const Batch& batch) {
    return batch.rows.empty() ? AsSent(batch) : Gathered(batch);
  }

  /// Gathers the batch's rows from the kept examples. The result is valid until the next batch.
  Batch Gathered(const Batch& batch) {
    gathered_ = {};
    for (const uint32_t row : batch.rows) {
      Append(kept_.examples, row, net_.inputs, gathered_.examples);
      if (!kept_.labels.empty()) Append(kept_.labels, row, 1, gathered_.labels);
      if (!kept_.targets.empty()) Append(kept_.targets, row, net_.outputs, gathered_.targets);
    }
    return {gathered_.examples, gathered_.labels, batch.index, gathered_.targets};
  }

  template <typename T>
  static void Append(const std::vector<T>& from, size_t row, size_t width, std::vector<T>& to) {
    const auto values = std::span(from).subspan(row * width, width);
    to.insert(to.end(), values.begin(), values.end());
  }

  /// Returns the copy that the device took of an offered batch. Returns another batch unchanged.
  Batch AsSent(const Batch& batch) const {
    for (size_t i = 0; i < staged_.size(); ++i) {
      if (batch.examples.data() != staged_[i].examples.data()) continue;
      return {sent_[i].examples, sent_[i].labels, batch.index, sent_[i].targets};
    }
    return batch;
  }

  /// Sets all gradients to NaN when a backward pass reports its first range. Until then, the last
  /// step's gradients may still be in use.
  void ForgetGradients() {
    std::fill(gradients_.begin(), gradients_.end(), std::numeric_limits<float>::quiet_NaN());
  }

  /// Copies each range to the host before it reports the range.
  class CopyingListener final : public GradientListener {
   public:
    CopyingListener(FakePlan& plan, GradientListener* next) : plan_(plan), next_(next) {}

    void OnGradientReady(ParameterRange range) override {
      if (range.end == plan_.gradients_.size()) plan_.ForgetGradients();
      const auto from = plan_.device_->gradients_host().subspan(range.begin, range.size());
      std::copy(from.begin(), from.end(),
                plan_.gradients_.begin() + static_cast<std::ptrdiff_t>(range.begin));
      if (next_ != nullptr) next_->OnGradientReady(range);
    }

   private:
    FakePlan& plan_;
    GradientListener* const next_;
  };

  const std::unique_ptr<Plan> device_;
  const NetSizes net_;
  const uint32_t batch_size_max_;
  const bool keeps_examples_;
  Values kept_;
  Values gathered_;

  // Coming batches: the step uses one place while the caller fills the other.
  std::array<Values, 2> staged_;
  std::array<Values, 2> sent_;
  size_t newest_ = 0;

  // Shared with the queues' threads, but never used at the same time: the interface forbids writing
  // weights that have arrived and reading unreported gradients during a step, and Drain orders the
  // rest.
  std::vector<float> weights_;
  std::vector<float> gradients_;
  std::optional<absl::StatusOr<StepResult>> step_;

  // Declared last, so that their threads end before the members that they use. Weights have a queue
  // of their own, since a step in the other queue may wait for them.
  Queue copies_;
  Queue queue_;
};

class FakeDevice final : public Device {
 public:
  FakeDevice(Device& device, bool keeps_examples)
      : device_(device), keeps_examples_(keeps_examples) {}

  absl::StatusOr<std::unique_ptr<Plan>> Prepare(const ModelSpec& model,
                                                const PlanOptions& options) override {
    absl::StatusOr<std::unique_ptr<Plan>> plan = device_.Prepare(model, options);
    if (!plan.ok()) return plan.status();
    const NetShapes shapes = std::get<NetShapes>(InferShapes(model));
    return std::make_unique<FakePlan>(*std::move(plan), NetSizes::Of(model, shapes),
                                      options.batch_size_max, keeps_examples_);
  }

 private:
  Device& device_;
  const bool keeps_examples_;
};

}  // namespace

std::unique_ptr<Device> NewFakeDevice(Device& device, bool keeps_examples) {
  return std::make_unique<FakeDevice>(device, keeps_examples);
}

}  // namespace slipstream
