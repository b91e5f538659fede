#include "server/core/shard/round.h"

#include <utility>

#include "common/base/check.h"

namespace slipstream {

void Round::Add(const Contribution& contribution) {
  gradients_ += contribution.parts();
  heard_from_.insert(contribution.worker);
  done_.insert(contribution.worker);
  for (const Contribution::Other& other : contribution.others) {
    heard_from_.insert(other.worker);
    done_.insert(other.worker);
  }
  // Those of one place stay in the order of their arrival.
  const bool by_rank = order_ == PolicyTraits::Order::kRank;
  unfolded_.emplace(by_rank ? Value(contribution.worker) : 0, contribution);
}

void Round::Excuse(WorkerId worker, bool leaves_out) {
  excused_.insert(worker);
  heard_from_.insert(worker);
  if (leaves_out) done_.insert(worker);
}

std::vector<Fold> Round::TakeFolds(std::optional<WorkerId> awaited, bool closes) {
  const bool by_rank = order_ == PolicyTraits::Order::kRank;
  std::vector<Fold> folds;
  while (!unfolded_.empty()) {
    const auto next = unfolded_.begin();
    if (by_rank && !closes && awaited.has_value() && *awaited < next->second.worker) break;
    const bool is_first = folded_.empty();
    const Contribution& folded = folded_.emplace_back(std::move(next->second));
    unfolded_.erase(next);
    folds.push_back({.push = folded.push,
                     .weight = static_cast<float>(Weight(folded)),
                     .clip = static_cast<float>(folded.clip),
                     .first = is_first});
  }
  return folds;
}

double Round::InverseDivisor() const {
  PS_CHECK(unfolded_.empty() && !folded_.empty());
  if (weighing_ == PolicyTraits::Weighing::kSum) return 1.0;
  double divisor = 0;
  for (const Contribution& contribution : folded_) divisor += Share(contribution);
  return 1.0 / divisor;
}

std::vector<Version> Round::bases() const {
  std::vector<Version> bases;
  ForEach([&bases](const Contribution& contribution) {
    bases.push_back(contribution.base);
    for (const Contribution::Other& other : contribution.others) bases.push_back(other.base);
  });
  return bases;
}

uint64_t Round::examples() const {
  uint64_t examples = 0;
  ForEach([&examples](const Contribution& contribution) { examples += contribution.examples; });
  return examples;
}

TensorSet Round::absent() const {
  PS_CHECK(gradients_ > 0);
  std::optional<TensorSet> absent;
  ForEach([&absent](const Contribution& contribution) {
    if (!absent.has_value()) absent = contribution.absent;
    absent->IntersectWith(contribution.absent);
  });
  return *std::move(absent);
}

double Round::mean_scale() const {
  PS_CHECK(gradients_ > 0);
  double sum = 0;
  ForEach([&sum](const Contribution& contribution) {
    sum += contribution.scale * contribution.parts();
  });
  return sum / gradients_;
}

double Round::Weight(const Contribution& contribution) const {
  return contribution.scale * Share(contribution);
}

double Round::Share(const Contribution& contribution) const {
  const Contribution& first = folded_.front();
  switch (weighing_) {
    case PolicyTraits::Weighing::kExamples:
      return static_cast<double>(contribution.examples) / first.examples;
    case PolicyTraits::Weighing::kEqual:
      return static_cast<double>(contribution.parts()) / first.parts();
    case PolicyTraits::Weighing::kSum:
      break;
  }
  return contribution.parts();
}

}  // namespace slipstream
