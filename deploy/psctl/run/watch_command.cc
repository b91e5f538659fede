#include "deploy/psctl/run/watch_command.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "common/security/security_flags.h"

namespace slipstream {
namespace {

namespace fs = std::filesystem;

std::string Absolute(std::string_view path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  return error ? std::string(path) : absolute.lexically_normal().string();
}

void MakeAbsolute(std::string& path) {
  if (!path.empty()) path = Absolute(path);
}

/// Returns the first program of this name that a shell finds, or an empty path if there is none.
/// Relative directories are passed over, because they mean others elsewhere.
fs::path FirstOnPath(const fs::path& name, std::string_view search_path) {
  while (!search_path.empty()) {
    const size_t end = search_path.find(':');
    const fs::path candidate = fs::path(search_path.substr(0, end)) / name;
    search_path.remove_prefix(end == search_path.npos ? search_path.size() : end + 1);
    std::error_code error;
    if (candidate.is_absolute() && fs::is_regular_file(candidate, error)) return candidate;
  }
  return {};
}

}  // namespace

std::string ShellWord(std::string_view text) {
  const bool is_plain = !text.empty() && std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_@%+=:,./-").find(c) != std::string_view::npos;
  });
  if (is_plain) return std::string(text);
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string ProgramAnywhere(std::string_view program, std::string_view search_path) {
  const fs::path name = fs::path(program).filename();
  const fs::path found = FirstOnPath(name, search_path);
  const bool is_a_name = name == program;
  std::error_code error;
  if (!found.empty() && (is_a_name || fs::equivalent(found, program, error))) return name.string();
  if (!is_a_name) return Absolute(program);
  // The shell found psctl in a relative directory.
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return error ? std::string(program) : self.string();
}

std::string WatchCommand(std::string_view program, std::string_view coordinator,
                         const SecuritySpec& security) {
  SecuritySpec anywhere = security;
  MakeAbsolute(anywhere.mtls.ca);
  MakeAbsolute(anywhere.mtls.certificate);
  MakeAbsolute(anywhere.mtls.key);
  if (!anywhere.token.starts_with("env:")) MakeAbsolute(anywhere.token);
  const char* const search_path = std::getenv("PATH");
  std::vector<std::string> words = {
      ProgramAnywhere(program, search_path == nullptr ? "" : search_path), "status", "--watch",
      "--coordinator", std::string(coordinator)};
  for (const std::string& flag : SecurityFlags(anywhere)) words.push_back(flag);
  std::string command;
  for (const std::string& word : words) command += (command.empty() ? "" : " ") + ShellWord(word);
  return command;
}

}  // namespace slipstream
