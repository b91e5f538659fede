#include "server/core/coordinator/initialization.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "common/base/limits.h"

namespace slipstream {
namespace {

std::string Describe(const Tensor& tensor) {
  return fmt::format("\"{}\" [{}]", tensor.name, fmt::join(tensor.shape, ", "));
}

std::string FirstDifference(const Initialization::Data& agreed, const Initialization::Data& named) {
  if (agreed.examples != named.examples) {
    return fmt::format("the training set has {} examples, the run's has {}", named.examples,
                       agreed.examples);
  }
  const bool are_known = agreed.fingerprint != 0 && named.fingerprint != 0;
  if (are_known && agreed.fingerprint != named.fingerprint) {
    return fmt::format("the training set has fingerprint {:016x}, the run's has {:016x}",
                       named.fingerprint, agreed.fingerprint);
  }
  for (const auto& [name, digest] : agreed.frozen) {
    const auto mine = named.frozen.find(name);
    if (mine == named.frozen.end()) {
      return fmt::format("\"{}\" needs no gradients in the run's model, and this one lacks it",
                         name);
    }
    if (mine->second != digest) {
      return fmt::format(
          "\"{}\", which needs no gradients, has other values than the worker's that came first: "
          "load the same ones in each",
          name);
    }
  }
  for (const auto& [name, _] : named.frozen) {
    if (agreed.frozen.contains(name)) continue;
    return fmt::format("\"{}\" needs no gradients, and the run's model lacks it", name);
  }
  return "";
}

}  // namespace

std::string FirstDifference(const TensorLayout& agreed, const TensorLayout& named) {
  const size_t common = std::min(agreed.tensors().size(), named.tensors().size());
  for (size_t i = 0; i < common; ++i) {
    const Tensor& ours = agreed.tensors()[i];
    const Tensor& theirs = named.tensors()[i];
    if (ours.name == theirs.name && ours.shape == theirs.shape) continue;
    return fmt::format("tensor {} is {}, the run's is {}", i, Describe(theirs), Describe(ours));
  }
  if (agreed.tensors().size() != named.tensors().size()) {
    return fmt::format("the model has {} tensors, the run's has {}", named.tensors().size(),
                       agreed.tensors().size());
  }
  return "";
}

absl::Status Initialization::Propose(const Identity& client, const TensorLayout& layout,
                                     const Data& named) {
  Data data = named;
  if (fixed_examples_.has_value() && data.examples == 0) data.examples = *fixed_examples_;
  if (!model_.has_value()) {
    const Data fixed = {fixed_examples_.value_or(data.examples), data.fingerprint, data.frozen};
    if (const std::string difference = FirstDifference(fixed, data); !difference.empty()) {
      return absl::InvalidArgumentError(difference);
    }
    if (!fixed_examples_ && (data.examples == 0 || data.examples > kExamplesMax)) {
      return absl::InvalidArgumentError(
          fmt::format("a training set has 1 to {} examples, not {}", kExamplesMax, data.examples));
    }
    const bool is_short = std::ranges::all_of(data.frozen, [](const auto& tensor) {
      return tensor.first.size() <= TensorLayout::kNameBytesMax;
    });
    if (data.frozen.size() > TensorLayout::kTensorsMax || !is_short) {
      return absl::InvalidArgumentError(
          fmt::format("a model has at most {} frozen tensors, with names of at most {} bytes",
                      TensorLayout::kTensorsMax, TensorLayout::kNameBytesMax));
    }
    absl::StatusOr<ShardMap> map = ShardMap::Cut(layout, shards_, cut_);
    if (!map.ok()) return map.status();
    model_ = Model{layout, *std::move(map), data};
  }
  std::string difference = FirstDifference(model_->layout, layout);
  if (difference.empty()) difference = FirstDifference(model_->data, data);
  if (!difference.empty()) return absl::InvalidArgumentError(difference);

  proposers_.insert(client.worker);
  return ProposeAgain(client);
}

absl::Status Initialization::ProposeAgain(const Identity& client) {
  if (!proposers_.contains(client.worker)) {
    return absl::InvalidArgumentError("layout: a worker names it in its first PrepareModel");
  }
  const bool queued = std::find(waiting_.begin(), waiting_.end(), client) != waiting_.end();
  const bool holds = grant_.has_value() && grant_->holder == client;
  if (!queued && !holds) waiting_.push_back(client);
  return absl::OkStatus();
}

bool Initialization::GrantNext() {
  if (grant_.has_value() || finished_ || waiting_.empty()) return false;
  grant_ = Grant{++last_grant_, waiting_.front()};
  waiting_.pop_front();
  return true;
}

absl::Status Initialization::Finish(const Identity& client, uint64_t grant) {
  if (!grant_.has_value() || grant_->number != grant || grant_->holder != client) {
    return absl::FailedPreconditionError(
        fmt::format("grant {} is not worker {}'s, or no longer", grant, Value(client.worker)));
  }
  finished_ = true;
  return absl::OkStatus();
}

void Initialization::Forget(WorkerId worker) {
  proposers_.erase(worker);
  waiting_.remove_if([worker](const Identity& client) { return client.worker == worker; });
  if (finished_) return;
  if (grant_.has_value() && grant_->holder.worker == worker) grant_.reset();
  if (proposers_.empty() && last_grant_ == 0) model_.reset();
}

void Initialization::Restart() {
  finished_ = false;
  grant_.reset();
}

}  // namespace slipstream
