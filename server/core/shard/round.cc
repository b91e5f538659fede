#include "server/core/shard/round.h"

#include <algorithm>

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
  if (order_ == PolicyTraits::Order::kArrival) {
    contributions_.push_back(contribution);
    return;
  }
  const auto place =
      std::upper_bound(contributions_.begin(), contributions_.end(), contribution,
                       [](const auto& a, const auto& b) { return a.worker < b.worker; });
  // A late joiner with a low id may come after higher ids have been folded; it is placed behind
  // these.
  const auto first_unfolded = contributions_.begin() + static_cast<std::ptrdiff_t>(folded_);
  contributions_.insert(std::max(place, first_unfolded), contribution);
}

void Round::Excuse(WorkerId worker, bool leaves_out) {
  excused_.insert(worker);
  heard_from_.insert(worker);
  if (leaves_out) done_.insert(worker);
}

std::vector<Fold> Round::TakeFolds(std::span<const WorkerId> awaited, bool closes) {
  const bool by_rank = order_ == PolicyTraits::Order::kRank;
  std::vector<Fold> folds;
  while (folded_ < contributions_.size()) {
    const Contribution& next = contributions_[folded_];
    if (by_rank && !closes && !awaited.empty() && awaited.front() < next.worker) break;
    folds.push_back({.push = next.push,
                     .weight = static_cast<float>(Weight(next)),
                     .clip = static_cast<float>(next.clip),
                     .first = folded_ == 0});
    ++folded_;
  }
  return folds;
}

double Round::InverseDivisor() const {
  PS_CHECK(folded_ == contributions_.size() && folded_ > 0);
  if (weighing_ == PolicyTraits::Weighing::kSum) return 1.0;
  double divisor = 0;
  for (const Contribution& contribution : contributions_) {
    divisor += Share(contribution);
  }
  return 1.0 / divisor;
}

std::vector<Version> Round::bases() const {
  std::vector<Version> bases;
  for (const Contribution& contribution : contributions_) {
    bases.push_back(contribution.base);
    for (const Contribution::Other& other : contribution.others) bases.push_back(other.base);
  }
  return bases;
}

uint64_t Round::examples() const {
  uint64_t examples = 0;
  for (const Contribution& contribution : contributions_) examples += contribution.examples;
  return examples;
}

TensorSet Round::absent() const {
  PS_CHECK(!contributions_.empty());
  TensorSet absent = contributions_.front().absent;
  for (const Contribution& contribution : contributions_) absent.IntersectWith(contribution.absent);
  return absent;
}

double Round::mean_scale() const {
  PS_CHECK(!contributions_.empty());
  double sum = 0;
  for (const Contribution& contribution : contributions_) {
    sum += contribution.scale * contribution.parts();
  }
  return sum / gradients_;
}

double Round::Weight(const Contribution& contribution) const {
  return contribution.scale * Share(contribution);
}

double Round::Share(const Contribution& contribution) const {
  const Contribution& first = contributions_.front();
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
