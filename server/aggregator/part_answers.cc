#include "server/aggregator/part_answers.h"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>

#include "common/protocol/composite_push.h"

namespace slipstream {
namespace {

bool HasWork(const CountedComposite& composite) {
  return std::ranges::any_of(composite.answer.weights->parts,
                             [](const PartAnswer& part) { return part.work.has_value(); });
}

}  // namespace

std::vector<bool> GoesOn(const CountedComposite& composite) {
  std::vector<bool> goes_on;
  for (size_t i = 0; i < composite.header.parts.size(); ++i) {
    const PushPart& part = composite.header.parts[i];
    std::optional<RoundWork> work;
    if (part.pull) work = composite.answer.weights->parts[i].work;
    const bool has_work = !work.has_value() || work->kind == RoundWork::Kind::kCompute;
    // A worker with free lanes pulls beside its pushes.
    goes_on.push_back(part.pull ? has_work : !part.rests);
  }
  return goes_on;
}

const CountedComposite* NewestOf(std::span<const CountedComposite* const> composites) {
  const CountedComposite* newest = nullptr;
  for (const CountedComposite* composite : composites) {
    const std::optional<WeightsHeader>& weights = composite->answer.weights;
    if (!weights.has_value()) continue;
    if (HasWork(*composite)) return nullptr;
    const auto age = [](const WeightsHeader& header) {
      return std::tuple(header.generation, header.version);
    };
    const bool is_newer = newest == nullptr || age(*weights) > age(*newest->answer.weights);
    if (is_newer) newest = composite;
  }
  return newest;
}

Answer AnswerOf(const PushHeader& push, const CountedComposite& composite, size_t part,
                const CountedComposite* newest) {
  Answer answer = {.push = ReplyTo(composite.answer.push, composite.header.parts[part])};
  if (!push.pull) return answer;
  const WeightsHeader& own = *composite.answer.weights;
  const bool takes_newest =
      newest != nullptr && newest->answer.weights->generation == own.generation;
  const CountedComposite& source = takes_newest ? *newest : composite;
  WeightsHeader header = *source.answer.weights;
  header.work = own.parts[part].work;
  header.clock = own.parts[part].clock;
  header.parts.clear();
  header.unchanged =
      push.holds_base && push.base == header.version && push.generation == header.generation;
  if (!header.unchanged) answer.weights = source.weights;
  answer.header = std::move(header);
  return answer;
}

PushReply NotCombined(std::string_view why) {
  PushReply reply;
  reply.outcome = PushOutcome::kNotCombined;
  reply.message = std::string(why);
  return reply;
}

}  // namespace slipstream
