#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPLETION_COMMAND_DESCRIPTION_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPLETION_COMMAND_DESCRIPTION_H_

#include <cstddef>
#include <string>
#include <vector>

namespace slipstream {

/// The value of an option, or a positional argument.
struct ArgumentDescription {
  enum class Kind {
    kText,       // Anything.
    kFile,       // The name of a file.
    kDirectory,  // The name of a directory.
    kSetting,    // key=value, a key of run.yaml.
    kChoice,     // One of the choices.
  };
  Kind kind = Kind::kText;
  std::vector<std::string> choices;
};

struct OptionDescription {
  std::vector<std::string> names;  // "-o", "--output".
  bool takes_value = false;
  ArgumentDescription value;
};

/// A command of psctl as its parser knows it.
struct CommandDescription {
  std::vector<std::string> words;  // {"config", "init"}; none for psctl itself.
  std::vector<OptionDescription> options;
  std::vector<ArgumentDescription> arguments;

  /// Returns the words with blanks between: "config init".
  std::string Path() const { return Join(words.size()); }

  /// Returns the path without its last word: "config". Empty for psctl itself.
  std::string ParentPath() const { return Join(words.empty() ? 0 : words.size() - 1); }

 private:
  std::string Join(size_t count) const {
    std::string path;
    for (size_t i = 0; i < count; ++i) path += (path.empty() ? "" : " ") + words[i];
    return path;
  }
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMPLETION_COMMAND_DESCRIPTION_H_
