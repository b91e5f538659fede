#include "worker/data/npy_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <limits>
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
constexpr size_t kDimensionsMax = 64;  // The limit of NumPy.

using Element = NpyHeader::Element;

/// A type's names in a header, without the order of its bytes: the one that NumPy writes, and the
/// letter for it that other writers may have.
struct ElementName {
  std::string_view name;
  std::string_view letter;
  Element element;
  size_t bytes;
};

constexpr std::array<ElementName, 11> kElements = {{{"f4", "f", Element::kF4, 4},
                                                    {"f8", "d", Element::kF8, 8},
                                                    {"i1", "b", Element::kI1, 1},
                                                    {"i2", "h", Element::kI2, 2},
                                                    {"i4", "i", Element::kI4, 4},
                                                    {"i8", "q", Element::kI8, 8},
                                                    {"u1", "B", Element::kU1, 1},
                                                    {"u2", "H", Element::kU2, 2},
                                                    {"u4", "I", Element::kU4, 4},
                                                    {"u8", "Q", Element::kU8, 8},
                                                    {"b1", "?", Element::kB1, 1}}};

const ElementName& NameOf(Element element) {
  const auto found = std::ranges::find(kElements, element, &ElementName::element);
  PS_CHECK(found != kElements.end());
  return *found;
}

absl::StatusOr<Element> FindElement(const std::string& descr) {
  std::string_view name = descr;
  if (name.find_first_of("<>=|") == 0) name.remove_prefix(1);
  for (const ElementName& known : kElements) {
    if (name == known.name || name == known.letter) return known.element;
  }
  if (name == "O") {
    return absl::DataLossError(
        "holds Python objects, which are not read; save numbers, as array.astype(\"float32\")");
  }
  return absl::DataLossError(fmt::format(
      "holds values of type \"{}\"; the types f4, f8, i1 to i8, u1 to u8 and b1 are read; save "
      "array.astype(\"float32\")",
      descr));
}

/// Reads the few forms of Python literals that NumPy writes, under Python 2 too if `is_python2`.
class Literal {
 public:
  Literal(std::string_view text, bool is_python2) : rest_(text), is_python2_(is_python2) {
    // A line that begins with space is an error in Python, unless it is the first.
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t"), rest_.size()));
  }

  bool Begins(char wanted) const { return rest_.starts_with(wanted); }

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

  /// Reads a whole number; one that 64 bits cannot hold as the largest that they can.
  std::optional<uint64_t> Count() {
    SkipSpace();
    const char* const begin = rest_.data();
    uint64_t count = 0;
    const auto [end, error] = std::from_chars(begin, begin + rest_.size(), count);
    if (error == std::errc::invalid_argument) return std::nullopt;
    if (error == std::errc::result_out_of_range) count = std::numeric_limits<uint64_t>::max();
    if (*begin == '0' && count > 0) return std::nullopt;  // Octal, in Python 2.
    rest_.remove_prefix(static_cast<size_t>(end - begin));
    if (is_python2_) Skip('L');
    return count;
  }

  /// Reads a tuple: (), (3,), (3, 4).
  std::optional<std::vector<uint64_t>> Tuple() {
    if (!Skip('(')) return std::nullopt;
    std::vector<uint64_t> items;
    bool has_comma = true;
    while (!Skip(')')) {
      const std::optional<uint64_t> item = has_comma ? Count() : std::nullopt;
      if (!item) return std::nullopt;
      items.push_back(*item);
      has_comma = Skip(',');
    }
    if (items.size() == 1 && !has_comma) return std::nullopt;  // (3) is a number.
    return items;
  }

 private:
  void SkipSpace() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\n\r\f"), rest_.size()));
  }

  std::string_view rest_;
  bool is_python2_;
};

/// The three entries of the dictionary. Of one that is there twice, Python takes the last.
struct Entries {
  std::optional<std::string> descr;
  std::optional<bool> is_fortran;
  std::optional<std::vector<uint64_t>> shape;
};

absl::Status Broken(std::string_view what) {
  return absl::DataLossError(fmt::format("header: {}", what));
}

absl::Status ReadEntry(const std::string& key, Literal& literal, Entries& entries) {
  if (key == "descr") {
    if (literal.Sees('[')) {
      return absl::DataLossError(
          "holds structured values; save each field as an array of numbers of its own");
    }
    entries.descr = literal.Text();
    return entries.descr ? absl::OkStatus() : Broken("descr is no text");
  }
  if (key == "fortran_order") {
    entries.is_fortran = literal.SkipWord("True");
    const bool is_said = *entries.is_fortran || literal.SkipWord("False");
    return is_said ? absl::OkStatus() : Broken("fortran_order is not True or False");
  }
  if (key == "shape") {
    entries.shape = literal.Tuple();
    return entries.shape ? absl::OkStatus() : Broken("shape is no tuple of sizes");
  }
  return Broken("an entry other than descr, fortran_order and shape");
}

absl::StatusOr<Entries> ReadEntries(Literal literal) {
  Entries entries;
  if (!literal.Begins('{') || !literal.Skip('{')) return Broken("is no dictionary");
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

size_t NpyHeader::element_bytes() const { return NameOf(element).bytes; }

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
  if (bytes.starts_with("\x1f\x8b")) {
    return absl::DataLossError("is packed by gzip; unpack it first, with gzip -d");
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
  NpyPreamble preamble{.version = major,
                       .bytes = major == 1 ? NpyPreamble::kBytesMin : NpyPreamble::kBytesMax};
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

absl::StatusOr<NpyHeader> ParseNpyDictionary(std::string_view text, uint8_t version) {
  absl::StatusOr<Entries> entries = ReadEntries(Literal(text, version < 3));
  if (!entries.ok()) return entries.status();
  const absl::StatusOr<Element> element = FindElement(*entries->descr);
  if (!element.ok()) return element.status();
  if (entries->shape->size() > kDimensionsMax) {
    return Broken(fmt::format("shape has {} dimensions, expected at most {}",
                              entries->shape->size(), kDimensionsMax));
  }
  uint64_t values = 1;
  for (const uint64_t size : *entries->shape) {
    if (size > kValuesMax || (size > 0 && values > kValuesMax / size)) {
      return Broken("announces more values than any file has");
    }
    values *= size;
  }
  return NpyHeader{.element = *element,
                   .shape = *std::move(entries->shape),
                   .is_fortran = *entries->is_fortran,
                   // A byte has no order.
                   .is_big_endian = entries->descr->starts_with('>') && NameOf(*element).bytes > 1};
}

namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian, mostly");

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
    case Element::kB1:
      std::ranges::transform(bytes, values.begin(), [](char byte) { return byte == 0 ? 0 : 1; });
      return;
  }
  PS_CHECK(false);
}

void SwapBytes(std::span<char> bytes, size_t element_bytes) {
  for (; !bytes.empty(); bytes = bytes.subspan(element_bytes)) {
    std::ranges::reverse(bytes.first(element_bytes));
  }
}

/// Goes through an array in the order of its file, and tells the positions of its values in C
/// order.
class FileOrder {
 public:
  explicit FileOrder(const NpyHeader& header) {
    if (!header.is_fortran) {
      dimensions_.push_back({.size = header.values(), .stride = 1});
      return;
    }
    uint64_t stride = header.values();
    for (const uint64_t size : header.shape) {
      stride /= std::max<uint64_t>(size, 1);
      dimensions_.push_back({.size = size, .stride = stride});
    }
  }

  uint64_t Next() {
    const uint64_t position = position_;
    for (Dimension& dimension : dimensions_) {  // The one that varies fastest is the first.
      position_ += dimension.stride;
      if (++dimension.index < dimension.size) break;
      position_ -= dimension.size * dimension.stride;
      dimension.index = 0;
    }
    return position;
  }

 private:
  struct Dimension {
    uint64_t size = 0;
    uint64_t stride = 0;
    uint64_t index = 0;
  };

  std::vector<Dimension> dimensions_;
  uint64_t position_ = 0;
};

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
  absl::StatusOr<NpyHeader> header = ParseNpyDictionary(dictionary, preamble->version);
  if (!header.ok()) return At(path, header.status());

  NpyFile npy(path, *std::move(file), *std::move(header),
              preamble->bytes + preamble->dictionary_bytes);
  const uint64_t expected = npy.header_.values() * npy.header_.element_bytes();
  const uint64_t found = *bytes - npy.header_bytes_;
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

absl::StatusOr<std::optional<ExampleValues>> NpyFile::Map(const ReadProgress& progress) const {
  const bool has_bytes = header_.element == Element::kU1;
  if (header_.is_fortran || header_.is_big_endian ||
      !(has_bytes || header_.element == Element::kF4)) {
    return std::nullopt;
  }
  absl::StatusOr<SharedBytes> file =
      MapFile(file_, path_, std::numeric_limits<uint64_t>::max(), progress);
  if (!file.ok()) return file.status();
  if (file->bytes.size() != header_bytes_ + header_.values() * header_.element_bytes()) {
    return absl::DataLossError(fmt::format("{}: its size has changed", path_));
  }
  if (!has_bytes) return ExampleValues(*std::move(file), header_bytes_);
  return ExampleValues(ByteRows::Of(*std::move(file), header_bytes_), {ByteScale()});
}

absl::Status NpyFile::Read(const ReadProgress& progress, const Sink& sink) {
  const uint64_t total = header_.values();
  const size_t element_bytes = header_.element_bytes();
  std::vector<char> bytes(std::min<uint64_t>(total, kPieceValues) * element_bytes);
  std::vector<double> values(bytes.size() / element_bytes);
  std::vector<uint64_t> positions(values.size());
  FileOrder order(header_);
  for (uint64_t first = 0; first < total; first += values.size()) {
    values.resize(std::min<uint64_t>(values.size(), total - first));
    positions.resize(values.size());
    bytes.resize(values.size() * element_bytes);
    if (std::fread(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) {
      return absl::DataLossError(
          fmt::format("{}: cannot be read: {}", path_,
                      std::ferror(file_.get()) != 0 ? strerror(errno) : "it has become shorter"));
    }
    if (header_.is_big_endian) SwapBytes(bytes, element_bytes);
    Widen(header_.element, bytes, values);
    std::ranges::generate(positions, [&] { return order.Next(); });
    if (absl::Status status = sink(positions, values); !status.ok()) return status;
    const double share = static_cast<double>(first + values.size()) / static_cast<double>(total);
    if (progress && !progress(path_, share)) return absl::CancelledError("stopped");
  }
  return absl::OkStatus();
}

}  // namespace slipstream
