#include "common/model_file/model_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <functional>
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "common/files/whole_file.h"
#include "common/model_file/weights_digest.h"

namespace slipstream {
namespace {

static_assert(std::endian::native == std::endian::little, "values lie in the file as in memory");

// Linux reads at most about 2 GiB in one call.
constexpr size_t kPieceBytes = size_t{64} << 20;

using HeaderLength = std::array<std::byte, 8>;

absl::Status Damaged(const std::string& path, const std::string& reason) {
  return absl::DataLossError(fmt::format("{}: {}", path, reason));
}

/// Fills `bytes` with those of the file from `offset` on.
absl::Status ReadAt(int file, uint64_t offset, std::span<std::byte> bytes,
                    const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t got = pread(file, bytes.data(), std::min<size_t>(bytes.size(), kPieceBytes),
                              static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Damaged(path, std::string("cannot be read: ") + std::strerror(errno));
    if (got == 0) return Damaged(path, "became shorter while it was read");
    bytes = bytes.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return absl::OkStatus();
}

/// Returns the first bytes of a file in words for people, as text if they are text, and else as
/// numbers.
std::string BeginText(const HeaderLength& begin) {
  const std::string_view text(reinterpret_cast<const char*>(begin.data()), begin.size());
  const auto is_text = [](char c) { return (c >= ' ' && c <= '~') || c == '\n'; };
  if (!std::ranges::all_of(text, is_text)) {
    std::string bytes = "the bytes";
    for (const std::byte byte : begin) bytes += fmt::format(" {:02x}", static_cast<int>(byte));
    return bytes;
  }
  return fmt::format("the text \"{}\"", text.substr(0, text.find('\n')));
}

/// Returns the header's length, which must lie within the file and the format's limit.
absl::StatusOr<uint64_t> ReadHeaderLength(int file, uint64_t file_bytes, const std::string& path) {
  HeaderLength length_bytes{};
  if (file_bytes < length_bytes.size()) {
    return Damaged(path, fmt::format("truncated: {} bytes, where {} tell the length of the header",
                                     file_bytes, length_bytes.size()));
  }
  if (absl::Status read = ReadAt(file, 0, length_bytes, path); !read.ok()) return read;
  const auto length = std::bit_cast<uint64_t>(length_bytes);
  if (length > kModelHeaderBytesMax) {
    return Damaged(path, fmt::format("is no model file: those of safetensors begin with the length "
                                     "of their header, and this one begins with {}",
                                     BeginText(length_bytes)));
  }
  if (length > file_bytes - length_bytes.size()) {
    return Damaged(path, fmt::format("truncated: a header of {} bytes, and the file has {} for it",
                                     length, file_bytes - length_bytes.size()));
  }
  return length;
}

std::string ShapeText(const Tensor& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.shape, ", "));
}

/// Returns how many bytes a value of the type has: the number in its name says the bits.
size_t ValueBytes(std::string_view dtype) {
  if (dtype.ends_with("64")) return 8;
  if (dtype.ends_with("32")) return 4;
  return dtype.ends_with("16") ? 2 : 1;
}

}  // namespace

absl::Status WriteModelFile(const std::string& path, const TensorLayout& layout,
                            const ModelMetadata& metadata, std::span<const float> weights,
                            std::vector<StoredTensor> beside) {
  PS_CHECK(weights.size() == layout.parameters());
  // Some readers want each tensor to lie at a multiple of its values' size: so the largest first.
  const auto is_before = [](const StoredTensor& tensor) { return ValueBytes(tensor.dtype) > 4; };
  std::ranges::stable_sort(beside, std::greater(),
                           [](const StoredTensor& tensor) { return ValueBytes(tensor.dtype); });
  const auto after_begin = std::ranges::partition_point(beside, is_before);
  const std::span before(beside.begin(), after_begin);
  const std::span after(after_begin, beside.end());
  absl::StatusOr<WholeFile> file = WholeFile::Create(path);
  if (!file.ok()) return file.status();
  const std::string header = EncodeModelHeader(layout, metadata, before, after);
  const auto length = std::bit_cast<HeaderLength>(uint64_t{header.size()});
  absl::Status written = file->Append(length);
  if (written.ok()) written = file->Append(std::as_bytes(std::span(header)));
  for (const StoredTensor& tensor : before) {
    if (written.ok()) written = file->Append(std::as_bytes(std::span(tensor.bytes)));
  }
  if (written.ok()) written = file->Append(std::as_bytes(weights));
  for (const StoredTensor& tensor : after) {
    if (written.ok()) written = file->Append(std::as_bytes(std::span(tensor.bytes)));
  }
  return written.ok() ? file->Publish() : written;
}

ModelFile::ModelFile(std::string path, FileDescriptor file, ModelHeader header, uint64_t data_begin)
    : path_(std::move(path)),
      file_(std::move(file)),
      header_(std::move(header)),
      data_begin_(data_begin) {}

absl::StatusOr<ModelFile> ModelFile::Open(const std::string& path) {
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat found = {};
  if (!file.is_open() || fstat(file.get(), &found) != 0) {
    return absl::NotFoundError(fmt::format("{}: cannot be opened: {}", path, strerror(errno)));
  }
  if (!S_ISREG(found.st_mode)) return Damaged(path, "is no plain file");
  const auto file_bytes = static_cast<uint64_t>(found.st_size);
  const absl::StatusOr<uint64_t> length = ReadHeaderLength(file.get(), file_bytes, path);
  if (!length.ok()) return length.status();
  std::string json(*length, '\0');
  const uint64_t header_begin = sizeof(HeaderLength);
  absl::Status read =
      ReadAt(file.get(), header_begin, std::as_writable_bytes(std::span(json)), path);
  if (!read.ok()) return read;
  const uint64_t data_begin = header_begin + *length;
  absl::StatusOr<ModelHeader> header = ParseModelHeader(json, file_bytes - data_begin);
  if (!header.ok()) return Damaged(path, std::string(header.status().message()));
  return ModelFile(path, std::move(file), *std::move(header), data_begin);
}

absl::Status ModelFile::CheckTensors(const TensorLayout& layout) const {
  for (const Tensor& tensor : layout.tensors()) {
    const Tensor* mine = header_.layout.Find(tensor.name);
    if (mine == nullptr) {
      return absl::InvalidArgumentError(
          fmt::format("{}: has no tensor \"{}\", which is {} in the model", path_, tensor.name,
                      ShapeText(tensor)));
    }
    if (mine->shape != tensor.shape) {
      return absl::InvalidArgumentError(fmt::format("{}: tensor \"{}\" is {}, and {} in the model",
                                                    path_, tensor.name, ShapeText(*mine),
                                                    ShapeText(tensor)));
    }
  }
  for (const Tensor& mine : header_.layout.tensors()) {
    if (layout.Find(mine.name) != nullptr) continue;
    return absl::InvalidArgumentError(fmt::format("{}: tensor \"{}\", {}, is not in the model",
                                                  path_, mine.name, ShapeText(mine)));
  }
  return absl::OkStatus();
}

absl::Status ModelFile::Read(const TensorLayout& layout, std::span<float> weights) const {
  PS_CHECK(weights.size() == layout.parameters());
  if (absl::Status same = CheckTensors(layout); !same.ok()) return same;
  for (const Tensor& tensor : layout.tensors()) {
    const std::span<float> values = weights.subspan(tensor.offset, tensor.size());
    const uint64_t begin = header_.layout.Find(tensor.name)->offset * sizeof(float);
    absl::Status read =
        ReadAt(file_.get(), data_begin_ + begin, std::as_writable_bytes(values), path_);
    if (!read.ok()) return read;
  }
  const auto named = header_.metadata.find(kWeightsSha256);
  if (named == header_.metadata.end()) return absl::OkStatus();
  const std::string digest = WeightsSha256(weights);
  if (digest == named->second) return absl::OkStatus();
  return Damaged(path_, fmt::format("damaged, or changed without its metadata: the weights have "
                                    "SHA-256 {}, and {} names {}",
                                    digest, kWeightsSha256, named->second));
}

}  // namespace slipstream
