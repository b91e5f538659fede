#include "worker/training/batch_feed.h"

#include <span>
#include <utility>

namespace slipstream {
namespace {

ExampleTable TableOf(const Dataset& data) {
  return {.values = data.examples.size(),
          .read = [&data](size_t begin, std::span<float> to) { data.examples.Read(begin, to); },
          .labels = data.labels,
          .targets = data.targets};
}

}  // namespace

BatchFeed::BatchFeed(const Dataset& train, uint32_t batch_size, uint64_t seed, Plan& plan)
    : train_(train),
      plan_(plan),
      plan_keeps_examples_(plan.KeepExamples(TableOf(train))),
      order_(train.count(), batch_size, seed) {}

BatchFeed::~BatchFeed() {
  {
    MutexLock lock(mutex_);
    is_ending_ = true;
  }
  changed_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

Batch BatchFeed::Take(uint64_t index) {
  // A step that is started over uses the same batch again.
  if (taken_.has_value() && taken_->index == index) return *taken_;
  if (plan_keeps_examples_) {
    taken_ = Batch{.index = index, .rows = order_.Examples(index)};
    return *taken_;
  }
  const std::optional<Batch> gathered = AwaitThread();
  const bool was_guessed = gathered.has_value() && gathered->index == index;
  if (was_guessed) ++guessed_;
  // Between two units of work the batch number jumps once, by any distance.
  const uint64_t stride = taken_.has_value() && taken_->index < index ? index - taken_->index : 1;
  if (std::exchange(last_stride_, stride) == stride) stride_ = stride;
  taken_ = was_guessed ? *gathered : Gather(index);
  if (plan_has_space_) Guess(index + stride_);
  return *taken_;
}

std::optional<Batch> BatchFeed::AwaitThread() {
  MutexLock lock(mutex_);
  while (asked_.has_value()) changed_.Wait(mutex_);
  return std::exchange(gathered_, std::nullopt);
}

void BatchFeed::Guess(uint64_t index) {
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  MutexLock lock(mutex_);
  asked_ = index;
  changed_.NotifyAll();
}

void BatchFeed::Run() {
  while (true) {
    uint64_t index = 0;
    {
      MutexLock lock(mutex_);
      while (!asked_.has_value() && !is_ending_) changed_.Wait(mutex_);
      if (is_ending_) return;
      index = *asked_;
    }
    const Batch batch = Gather(index);
    MutexLock lock(mutex_);
    gathered_ = batch;
    asked_.reset();
    changed_.NotifyAll();
  }
}

Batch BatchFeed::Gather(uint64_t index) {
  const std::span<const uint32_t> examples = order_.Examples(index);
  std::optional<BatchSpace> space;
  if (plan_has_space_) space = plan_.NewBatch(static_cast<uint32_t>(examples.size()));
  plan_has_space_ = space.has_value();
  if (!plan_has_space_) {
    examples_.resize(examples.size() * train_.shape.elements());
    labels_.resize(train_.is_labelled() ? examples.size() : 0);
    targets_.resize(train_.is_labelled() ? 0 : examples.size() * train_.outputs);
    space = {examples_, labels_, targets_};
  }
  // A plan without such space computes on the CPU, where other workers use the other processors, so
  // one thread gathers.
  const size_t threads = plan_has_space_ ? GatherThreads(space->examples.size_bytes()) : 1;
  gatherer_.Gather(train_, examples, {space->examples, space->labels, space->targets}, threads);
  if (plan_has_space_) plan_.OfferBatch();
  return {.examples = space->examples,
          .labels = space->labels,
          .index = index,
          .targets = space->targets};
}

}  // namespace slipstream
