#include "worker/data/npy_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "common/base/check.h"

namespace slipstream {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr uint64_t kValuesMax = uint64_t{1} << 48;
constexpr size_t kDimensionsMax = 32;  // The limit of NumPy.

using Element = NpyHeader::Element;

struct ElementName {
  std::string_view descr;
  Element element;
  size_t bytes;
};

constexpr std::array<ElementName, 11> kElements = {{{"<f4", Element::kF4, 4},
                                                    {"<f8", Element::kF8, 8},
                                                    {"|i1", Element::kI1, 1},
                                                    {"<i2", Element::kI2, 2},
                                                    {"<i4", Element::kI4, 4},
                                                    {"<i8", Element::kI8, 8},
                                                    {"|u1", Element::kU1, 1},
                                                    {"<u2", Element::kU2, 2},
                                                    {"<u4", Element::kU4, 4},
                                                    {"<u8", Element::kU8, 8},
                                                    {"|b1", Element::kU1, 1}}};

absl::StatusOr<Element> FindElement(const std::string& descr) {
  for (const ElementName& name : kElements) {
    if (name.descr == descr) return name.element;
  }
  if (descr == "|O") {
    return absl::DataLossError(
        "holds Python objects, which are not read; save numbers, as array.astype(\"float32\")");
  }
  if (descr.starts_with('>')) {
    return absl::DataLossError(fmt::format(
        "holds big-endian values (\"{}\"); save array.astype(\"<{}\")", descr, descr.substr(1)));
  }
  return absl::DataLossError(fmt::format(
      "holds values of type \"{}\"; expected whole or real numbers of up to 64 bits but float16; "
      "save array.astype(\"float32\")",
      descr));
}

/// Reads the few forms of Python literals that NumPy writes.
class Literal {
 public:
  explicit Literal(std::string_view text) : rest_(text) {}

  bool Skip(char wanted) {
    SkipSpace();
    if (!rest_.starts_with(wanted)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool SkipWord(std::string_view word) {
    SkipSpace();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  bool Sees(char wanted) {
    SkipSpace();
    return rest_.starts_with(wanted);
  }

  bool IsAtEnd() {
    SkipSpace();
    return rest_.empty();
  }

  /// Reads a string in single or double quotes, without escapes.
  std::optional<std::string> Text() {
    SkipSpace();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) return std::nullopt;
    const size_t end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }

  std::optional<uint64_t> Count() {
    SkipSpace();
    uint64_t count = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), count);
    if (error != std::errc()) return std::nullopt;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return count;
  }

  /// Reads a tuple: (), (3,), (3, 4).
  std::optional<std::vector<uint64_t>> Tuple() {
    if (!Skip('(')) return std::nullopt;
    std::vector<uint64_t> items;
    while (!Skip(')')) {
      const std::optional<uint64_t> item = Count();
      if (!item || items.size() == kDimensionsMax) return std::nullopt;
      items.push_back(*item);
      if (!Skip(',') && !Sees(')')) return std::nullopt;
    }
    return items;
  }

 private:
  void SkipSpace() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }

  std::string_view rest_;
};

/// The three entries of the dictionary; each may be read once.
struct Entries {
  std::optional<std::string> descr;
  std::optional<bool> is_fortran;
  std::optional<std::vector<uint64_t>> shape;
};

absl::Status Broken(std::string_view what) {
  return absl::DataLossError(fmt::format("header: {}", what));
}

absl::Status ReadEntry(const std::string& key, Literal& literal, Entries& entries) {
  if (key == "descr" && !entries.descr) {
    if (literal.Sees('[')) {
      return absl::DataLossError(
          "holds structured values; save each field as an array of numbers of its own");
    }
    entries.descr = literal.Text();
    return entries.descr ? absl::OkStatus() : Broken("descr is no text");
  }
  if (key == "fortran_order" && !entries.is_fortran) {
    if (literal.SkipWord("True")) entries.is_fortran = true;
    if (!entries.is_fortran && literal.SkipWord("False")) entries.is_fortran = false;
    return entries.is_fortran ? absl::OkStatus() : Broken("fortran_order is not True or False");
  }
  if (key == "shape" && !entries.shape) {
    entries.shape = literal.Tuple();
    return entries.shape ? absl::OkStatus() : Broken("shape is no tuple of sizes");
  }
  return Broken("an entry other than one descr, one fortran_order and one shape");
}

absl::StatusOr<Entries> ReadEntries(std::string_view text) {
  Literal literal(text);
  Entries entries;
  if (!literal.Skip('{')) return Broken("is no dictionary");
  while (!literal.Skip('}')) {
    const std::optional<std::string> key = literal.Text();
    if (!key || !literal.Skip(':')) return Broken("is no dictionary of names");
    if (absl::Status status = ReadEntry(*key, literal, entries); !status.ok()) return status;
    if (!literal.Skip(',') && !literal.Sees('}')) return Broken("lacks a comma or its end");
  }
  if (!literal.IsAtEnd()) return Broken("goes on behind its dictionary");
  if (!entries.descr || !entries.is_fortran || !entries.shape) {
    return Broken("lacks descr, fortran_order or shape");
  }
  return entries;
}

}  // namespace

size_t NpyHeader::element_bytes() const {
  for (const ElementName& name : kElements) {
    if (name.element == element) return name.bytes;
  }
  return 0;
}

uint64_t NpyHeader::values() const {
  uint64_t values = 1;
  for (const uint64_t size : shape) values *= size;
  return values;
}

absl::StatusOr<NpyPreamble> ParseNpyPreamble(std::string_view bytes) {
  if (bytes.starts_with("PK\x03\x04")) {
    return absl::DataLossError(
        "is a .npz archive; save each array by itself with numpy.save(path, array)");
  }
  if (!bytes.starts_with(kMagic)) {
    return absl::DataLossError("is no .npy file: it does not begin with \\x93NUMPY");
  }
  if (bytes.size() < NpyPreamble::kBytesMin) return absl::DataLossError("truncated: no header");
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const uint8_t major = byte(6);
  if (major < 1 || major > 3 || byte(7) != 0) {
    return absl::DataLossError(
        fmt::format("has format {}.{}, expected 1.0, 2.0 or 3.0", major, byte(7)));
  }
  NpyPreamble preamble{.bytes = major == 1 ? NpyPreamble::kBytesMin : NpyPreamble::kBytesMax};
  if (bytes.size() < preamble.bytes) return absl::DataLossError("truncated: no header");
  for (size_t i = preamble.bytes; i-- > 8;) {
    preamble.dictionary_bytes = preamble.dictionary_bytes << 8 | byte(i);
  }
  if (preamble.dictionary_bytes > NpyPreamble::kDictionaryBytesMax) {
    return absl::DataLossError(fmt::format("announces a header of {} bytes, expected at most {}",
                                           preamble.dictionary_bytes,
                                           NpyPreamble::kDictionaryBytesMax));
  }
  return preamble;
}

absl::StatusOr<NpyHeader> ParseNpyDictionary(std::string_view text) {
  absl::StatusOr<Entries> entries = ReadEntries(text);
  if (!entries.ok()) return entries.status();
  const absl::StatusOr<Element> element = FindElement(*entries->descr);
  if (!element.ok()) return element.status();
  if (*entries->is_fortran) {
    return absl::DataLossError(
        "is in Fortran order; save numpy.ascontiguousarray(array), which is in C order");
  }
  uint64_t values = 1;
  for (const uint64_t size : *entries->shape) {
    if (size > kValuesMax || (size > 0 && values > kValuesMax / size)) {
      return Broken("announces more values than any file has");
    }
    values *= size;
  }
  return NpyHeader{*element, *std::move(entries->shape)};
}

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
