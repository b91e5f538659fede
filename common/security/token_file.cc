#include "common/security/token_file.h"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_split.h"
#include "common/log/log.h"
#include "common/security/certificate.h"

namespace slipstream {
namespace {

constexpr size_t kTokensMax = 8;
constexpr size_t kTokenBytesMin = 16;
constexpr size_t kTokenBytesMax = 256;
constexpr absl::Duration kReadInterval = absl::Seconds(5);

bool IsVisible(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7F; });
}

bool IsToken(std::string_view text) {
  return text.size() >= kTokenBytesMin && text.size() <= kTokenBytesMax && IsVisible(text);
}

absl::StatusOr<std::string> TextAt(const std::string& path) {
  constexpr std::string_view kEnvironment = "env:";
  if (!path.starts_with(kEnvironment)) {
    absl::StatusOr<std::string> text = ReadSmallFile(path);
    const bool may_be_secret = IsToken(path) && path.find('/') == std::string::npos;
    if (text.ok() || !may_be_secret) return text;
    return absl::InvalidArgumentError(
        "the run's token is given where the path of a file that holds it, or env:NAME, should be");
  }
  const char* const value = std::getenv(path.c_str() + kEnvironment.size());
  if (value == nullptr) return absl::NotFoundError("there is no variable " + path);
  return value;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ReadTokens(const std::string& path) {
  const absl::StatusOr<std::string> text = TextAt(path);
  if (!text.ok()) return text.status();
  std::vector<std::string> tokens;
  int number = 0;
  for (const absl::string_view part : absl::StrSplit(*text, '\n')) {
    std::string_view line(part.data(), part.size());
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    if (!IsToken(line)) {
      return absl::InvalidArgumentError(
          fmt::format("{}:{}: a token has {} to {} visible ASCII characters; make one with openssl "
                      "rand -hex 32",
                      path, number, kTokenBytesMin, kTokenBytesMax));
    }
    tokens.emplace_back(line);
  }
  if (tokens.empty() || tokens.size() > kTokensMax) {
    return absl::InvalidArgumentError(
        fmt::format("{}: it holds {} tokens, and has to hold 1 to {}, one on a line", path,
                    tokens.size(), kTokensMax));
  }
  return tokens;
}

TokenFile::TokenFile(std::string path) : path_(std::move(path)) {
  if (!path_.empty()) Read();
}

std::string TokenFile::First(absl::Time now) {
  Refresh(now);
  MutexLock lock(mutex_);
  return tokens_.empty() ? "" : tokens_.front();
}

bool TokenFile::Holds(std::string_view token, absl::Time now) {
  Refresh(now);
  MutexLock lock(mutex_);
  bool is_held = false;
  for (const std::string& held : tokens_) {
    const bool is_same =
        held.size() == token.size() && CRYPTO_memcmp(held.data(), token.data(), token.size()) == 0;
    is_held = is_held || is_same;
  }
  return is_held;
}

void TokenFile::Refresh(absl::Time now) {
  {
    MutexLock lock(mutex_);
    if (path_.empty() || now - read_ < kReadInterval) return;
    read_ = now;
  }
  Read();
}

void TokenFile::Read() {
  absl::StatusOr<std::vector<std::string>> tokens = ReadTokens(path_);
  if (!tokens.ok()) {
    LogWarning("the run's tokens stay as they were", {{"reason", tokens.status().message()}});
    return;
  }
  MutexLock lock(mutex_);
  tokens_ = *std::move(tokens);
}

}  // namespace slipstream
