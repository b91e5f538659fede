#include "worker/data/npy_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "common/base/check.h"

namespace slipstream {
namespace {

static_assert(std::endian::native == std::endian::little, "files are read as they lie");

constexpr size_t kPieceValues = size_t{1} << 17;

absl::Status At(const std::string& path, const absl::Status& status) {
  return absl::DataLossError(fmt::format("{}: {}", path, std::string(status.message())));
}

template <typename Number>
void Widen(std::span<const char> bytes, std::span<double> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    Number number;
    std::memcpy(&number, bytes.data() + i * sizeof(Number), sizeof(Number));
    values[i] = static_cast<double>(number);
  }
}

void Widen(NpyHeader::Element element, std::span<const char> bytes, std::span<double> values) {
  using Element = NpyHeader::Element;
  switch (element) {
    case Element::kF4:
      return Widen<float>(bytes, values);
    case Element::kF8:
      return Widen<double>(bytes, values);
    case Element::kI1:
      return Widen<int8_t>(bytes, values);
    case Element::kI2:
      return Widen<int16_t>(bytes, values);
    case Element::kI4:
      return Widen<int32_t>(bytes, values);
    case Element::kI8:
      return Widen<int64_t>(bytes, values);
    case Element::kU1:
      return Widen<uint8_t>(bytes, values);
    case Element::kU2:
      return Widen<uint16_t>(bytes, values);
    case Element::kU4:
      return Widen<uint32_t>(bytes, values);
    case Element::kU8:
      return Widen<uint64_t>(bytes, values);
  }
  PS_CHECK(false);
}

/// Reads up to `bytes` bytes; fewer at the end of the file.
std::string Take(const OpenFile& file, size_t bytes) {
  std::string taken(bytes, '\0');
  taken.resize(std::fread(taken.data(), 1, bytes, file.get()));
  return taken;
}

}  // namespace

absl::StatusOr<NpyFile> NpyFile::Open(const std::string& path) {
  absl::StatusOr<OpenFile> file = OpenToRead(path);
  if (!file.ok()) return file.status();
  const absl::StatusOr<uint64_t> bytes = FileBytes(*file, path);
  if (!bytes.ok()) return bytes.status();

  const absl::StatusOr<NpyPreamble> preamble =
      ParseNpyPreamble(Take(*file, NpyPreamble::kBytesMax));
  if (!preamble.ok()) return At(path, preamble.status());
  if (std::fseek(file->get(), static_cast<long>(preamble->bytes), SEEK_SET) != 0) {
    return absl::DataLossError(fmt::format("{}: cannot be read: {}", path, strerror(errno)));
  }
  const std::string dictionary = Take(*file, preamble->dictionary_bytes);
  if (dictionary.size() < preamble->dictionary_bytes) {
    return absl::DataLossError(fmt::format("{}: truncated: a header of {} bytes, expected {}", path,
                                           dictionary.size(), preamble->dictionary_bytes));
  }
  absl::StatusOr<NpyHeader> header = ParseNpyDictionary(dictionary);
  if (!header.ok()) return At(path, header.status());

  NpyFile npy(path, *std::move(file), *std::move(header));
  const uint64_t expected = npy.header_.values() * npy.header_.element_bytes();
  const uint64_t found = *bytes - preamble->bytes - preamble->dictionary_bytes;
  if (found != expected) {
    return absl::DataLossError(
        fmt::format("{}: {}: {} bytes after the header, expected {} for the shape {}", path,
                    found < expected ? "truncated" : "too long", found, expected, npy.ShapeText()));
  }
  return npy;
}

std::string NpyFile::ShapeText() const {
  return fmt::format("({}{})", fmt::join(shape(), ", "), shape().size() == 1 ? "," : "");
}

std::string NpyFile::IndexText(uint64_t position) const {
  std::vector<uint64_t> index(shape().size());
  for (size_t i = index.size(); i-- > 0;) {
    index[i] = position % shape()[i];
    position /= shape()[i];
  }
  return fmt::format("[{}]", fmt::join(index, ", "));
}

absl::Status NpyFile::Read(const ReadProgress& progress, const Sink& sink) {
  const uint64_t total = header_.values();
  const size_t element_bytes = header_.element_bytes();
  std::vector<char> bytes(std::min<uint64_t>(total, kPieceValues) * element_bytes);
  std::vector<double> values(bytes.size() / element_bytes);
  for (uint64_t first = 0; first < total; first += values.size()) {
    values.resize(std::min<uint64_t>(values.size(), total - first));
    const size_t wanted = values.size() * element_bytes;
    if (std::fread(bytes.data(), 1, wanted, file_.get()) != wanted) {
      return absl::DataLossError(
          fmt::format("{}: cannot be read: {}", path_,
                      std::ferror(file_.get()) != 0 ? strerror(errno) : "it has become shorter"));
    }
    Widen(header_.element, std::span(bytes).first(wanted), values);
    if (absl::Status status = sink(first, values); !status.ok()) return status;
    const double share = static_cast<double>(first + values.size()) / static_cast<double>(total);
    if (progress && !progress(path_, share)) return absl::CancelledError("stopped");
  }
  return absl::OkStatus();
}

}  // namespace slipstream
