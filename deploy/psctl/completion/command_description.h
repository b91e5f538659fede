#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPLETION_COMMAND_DESCRIPTION_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPLETION_COMMAND_DESCRIPTION_H_

#include <cstddef>
#include <string>
#include <vector>

namespace slipstream {

/// What stands behind an option or as an argument.
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
  std::string help;
  bool takes_value = false;
  ArgumentDescription value;
};

/// A command of psctl as its parser knows it, for those who help people to type it.
struct CommandDescription {
  std::vector<std::string> words;  // {"config", "init"}; none for psctl itself.
  std::string help;
  std::vector<OptionDescription> options;
  std::vector<ArgumentDescription> arguments;

  /// "config init"
  std::string Path() const { return Join(words.size()); }

  /// "config"; of psctl itself, nothing.
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
