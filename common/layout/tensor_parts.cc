#include "common/layout/tensor_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"

namespace slipstream {
namespace {

constexpr std::string_view kOf = " of ";

// A part's name has so many bytes for the name of its tensor. The range and the shape
// take 55 bytes at most, as neither has more values than kParametersMax.
constexpr size_t kTensorNameBytesMax = TensorLayout::kNameBytesMax - 64;

/// Returns the first `bytes_max` bytes of `text`, or fewer if they would end within a character.
std::string_view Begin(std::string_view text, size_t bytes_max) {
  size_t end = std::min(text.size(), bytes_max);
  while (end > 0 && end < text.size() && (text[end] & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

/// Joins the parts of one tensor after another.
class PartJoiner {
 public:
  absl::Status Add(const Tensor& tensor) {
    const std::optional<TensorPart> part = ParsePart(tensor.name);
    if (!part || part->range.begin == 0) {
      if (absl::Status finished = Finish(); !finished.ok()) return finished;
      const absl::Status added =
          part ? whole_.Append(part->name, part->shape) : whole_.Append(tensor.name, tensor.shape);
      if (!added.ok()) return added;
      end_ = part ? part->range.end : tensor.size();
      return absl::OkStatus();
    }
    const bool follows = !whole_.tensors().empty() && whole_.tensors().back().name == part->name &&
                         whole_.tensors().back().shape == part->shape && part->range.begin == end_;
    if (!follows) {
      return absl::InvalidArgumentError(
          fmt::format("the values of {} before {} are missing", part->name, part->range.begin));
    }
    end_ = part->range.end;
    return absl::OkStatus();
  }

  /// Fails if the last tensor lacks values.
  absl::Status Finish() const {
    if (whole_.tensors().empty() || end_ == whole_.tensors().back().size()) {
      return absl::OkStatus();
    }
    const Tensor& last = whole_.tensors().back();
    return absl::InvalidArgumentError(
        fmt::format("the values of {} from {} on are missing", last.name, end_));
  }

  TensorLayout Take() { return std::move(whole_); }

 private:
  TensorLayout whole_;
  size_t end_ = 0;  // How many values of the last tensor have come.
};

}  // namespace

std::string NameOfPart(const TensorPart& part) {
  std::string name = part.name;
  if (name.size() > kTensorNameBytesMax) {
    const std::string hash = fmt::format("~{:016x}", XXH64(name.data(), name.size(), 0));
    name = std::string(Begin(name, kTensorNameBytesMax - hash.size())) + hash;
  }
  return fmt::format("{}[{}:{}{}{}]", name, part.range.begin, part.range.end, kOf,
                     fmt::join(part.shape, "x"));
}

std::optional<TensorPart> ParsePart(std::string_view name) {
  const size_t bracket = name.rfind('[');
  if (!name.ends_with(']') || bracket == name.npos) return std::nullopt;
  const std::string_view inner = name.substr(bracket + 1, name.size() - bracket - 2);
  const size_t colon = inner.find(':');
  const size_t of = inner.find(kOf);
  if (colon == inner.npos || of == inner.npos || colon > of) return std::nullopt;
  TensorPart part = {.name = std::string(name.substr(0, bracket)), .range = {}, .shape = {}};
  const auto read = [](std::string_view text, auto& number) {
    return absl::SimpleAtoi(absl::string_view(text.data(), text.size()), &number);
  };
  if (!read(inner.substr(0, colon), part.range.begin)) return std::nullopt;
  if (!read(inner.substr(colon + 1, of - colon - 1), part.range.end)) return std::nullopt;
  const std::string shape(inner.substr(of + kOf.size()));
  if (!shape.empty()) {
    for (const absl::string_view text : absl::StrSplit(shape, 'x')) {
      uint64_t dimension = 0;
      if (!absl::SimpleAtoi(text, &dimension)) return std::nullopt;
      part.shape.push_back(dimension);
    }
  }
  // Signs, blanks and leading zeros are in no name that NameOfPart makes.
  if (part.range.begin >= part.range.end || NameOfPart(part) != name) return std::nullopt;
  return part;
}

TensorLayout PartOf(const TensorLayout& layout, const ParameterRange& range) {
  PS_CHECK(range.end <= layout.parameters());
  TensorLayout part;
  for (const Tensor& tensor : layout.tensors()) {
    const size_t begin = std::max(tensor.offset, range.begin);
    const size_t end = std::min(tensor.offset + tensor.size(), range.end);
    if (begin >= end) continue;
    const bool is_whole = end - begin == tensor.size();
    const absl::Status added =
        is_whole && !tensor.name.ends_with(']')
            ? part.Append(tensor.name, tensor.shape)
            : part.Append(NameOfPart({.name = tensor.name,
                                      .range = {begin - tensor.offset, end - tensor.offset},
                                      .shape = tensor.shape}),
                          {end - begin});
    PS_CHECK(added.ok());
  }
  return part;
}

absl::StatusOr<TensorLayout> JoinParts(std::span<const TensorLayout> parts) {
  PartJoiner joiner;
  for (const TensorLayout& part : parts) {
    for (const Tensor& tensor : part.tensors()) {
      if (absl::Status added = joiner.Add(tensor); !added.ok()) return added;
    }
  }
  if (absl::Status finished = joiner.Finish(); !finished.ok()) return finished;
  return joiner.Take();
}

}  // namespace slipstream
