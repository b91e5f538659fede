#include "common/kernels/value_changes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "common/base/check.h"

namespace slipstream {
namespace {

static_assert(std::endian::native == std::endian::little);

// The forms of a block, in the two highest bits of its head; the others count its changed values.
constexpr uint32_t kFormShift = 30;
constexpr uint32_t kCountMask = (uint32_t{1} << kFormShift) - 1;
enum class Form : uint32_t {
  kSingles = 0,       // Places of 16 bits, then values of 32.
  kSingleHalves = 1,  // Places of 16 bits, then the upper halves of values whose lower ones are 0.
  kAll = 2,           // Values of 32 bits, of the whole block.
};

uint32_t BitsOf(float value) { return std::bit_cast<uint32_t>(value); }

void AppendBytes(const void* bytes, size_t size, std::string& out) {
  out.append(static_cast<const char*>(bytes), size);
}

void AppendHead(Form form, size_t count, std::string& out) {
  const auto head = static_cast<uint32_t>(form) << kFormShift | static_cast<uint32_t>(count);
  AppendBytes(&head, sizeof(head), out);
}

void AppendBlock(std::span<const float> from, std::span<const float> to, std::string& out) {
  std::array<uint16_t, kChangesBlockValues + 1> places;
  size_t count = 0;
  uint32_t lower_halves = 0;
  for (size_t i = 0; i < to.size(); ++i) {
    // There is no branch, since a processor cannot guess which values have changed.
    const bool has_changed = BitsOf(from[i]) != BitsOf(to[i]);
    places[count] = static_cast<uint16_t>(i);
    count += has_changed ? 1 : 0;
    lower_halves |= has_changed ? BitsOf(to[i]) & 0xffff : 0;
  }
  const bool are_halves = lower_halves == 0;
  const size_t bytes_each = sizeof(uint16_t) + (are_halves ? sizeof(uint16_t) : sizeof(float));
  if (count * bytes_each >= to.size_bytes()) {
    AppendHead(Form::kAll, to.size(), out);
    return AppendBytes(to.data(), to.size_bytes(), out);
  }
  AppendHead(are_halves ? Form::kSingleHalves : Form::kSingles, count, out);
  AppendBytes(places.data(), count * sizeof(uint16_t), out);
  for (size_t i = 0; i < count; ++i) {
    const uint32_t bits = BitsOf(to[places[i]]);
    const auto half = static_cast<uint16_t>(bits >> 16);
    are_halves ? AppendBytes(&half, sizeof(half), out) : AppendBytes(&bits, sizeof(bits), out);
  }
}

/// Reads pieces off the begin of some bytes.
class Pieces {
 public:
  explicit Pieces(std::string_view bytes) : bytes_(bytes) {}

  /// Returns null if so many bytes are not there.
  const char* Take(size_t size) {
    if (bytes_.size() < size) return nullptr;
    const char* const taken = bytes_.data();
    bytes_.remove_prefix(size);
    return taken;
  }

  bool is_at_end() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
};

template <typename Number>
Number NumberAt(const char* bytes, size_t index) {
  Number number = 0;
  std::memcpy(&number, bytes + index * sizeof(Number), sizeof(Number));
  return number;
}

bool ApplyBlock(Pieces& pieces, std::span<const float> from, std::span<float> to) {
  const char* const head_bytes = pieces.Take(sizeof(uint32_t));
  if (head_bytes == nullptr) return false;
  const auto head = NumberAt<uint32_t>(head_bytes, 0);
  const auto form = static_cast<Form>(head >> kFormShift);
  const size_t count = head & kCountMask;
  if (count > to.size()) return false;
  if (form == Form::kAll) {
    const char* const all = count == to.size() ? pieces.Take(to.size_bytes()) : nullptr;
    if (all == nullptr) return false;
    std::memcpy(to.data(), all, to.size_bytes());
    return true;
  }
  if (form != Form::kSingles && form != Form::kSingleHalves) return false;
  const bool are_halves = form == Form::kSingleHalves;
  const char* const places = pieces.Take(count * sizeof(uint16_t));
  const char* const values = pieces.Take(count * (are_halves ? sizeof(uint16_t) : sizeof(float)));
  if (places == nullptr || values == nullptr) return false;
  std::ranges::copy(from, to.begin());
  for (size_t i = 0; i < count; ++i) {
    const size_t place = NumberAt<uint16_t>(places, i);
    if (place >= to.size()) return false;
    const uint32_t bits =
        are_halves ? uint32_t{NumberAt<uint16_t>(values, i)} << 16 : NumberAt<uint32_t>(values, i);
    to[place] = std::bit_cast<float>(bits);
  }
  return true;
}

}  // namespace

void AppendChanges(std::span<const float> from, std::span<const float> to, std::string& blocks) {
  PS_CHECK(from.size() == to.size());
  for (size_t begin = 0; begin < to.size(); begin += kChangesBlockValues) {
    const size_t count = std::min(kChangesBlockValues, to.size() - begin);
    AppendBlock(from.subspan(begin, count), to.subspan(begin, count), blocks);
  }
}

void AppendNoChanges(size_t values, std::string& blocks) {
  for (size_t begin = 0; begin < values; begin += kChangesBlockValues) {
    AppendHead(Form::kSingleHalves, 0, blocks);
  }
}

bool ApplyChanges(std::string_view blocks, std::span<const float> from, std::span<float> to) {
  PS_CHECK(from.size() == to.size());
  Pieces pieces(blocks);
  for (size_t begin = 0; begin < to.size(); begin += kChangesBlockValues) {
    const size_t count = std::min(kChangesBlockValues, to.size() - begin);
    if (!ApplyBlock(pieces, from.subspan(begin, count), to.subspan(begin, count))) return false;
  }
  return pieces.is_at_end();
}

}  // namespace slipstream
