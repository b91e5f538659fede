#include "deploy/psctl/completion/command.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "common/process/exit_code.h"
#include "deploy/psctl/completion/completion.h"

namespace slipstream {
namespace {

// Each script asks `psctl complete` when Tab is pressed, so that only psctl knows the candidates.
constexpr std::string_view kBash =
    R"(# Completes psctl's command line in bash. For this shell: source <(psctl completion bash); for all:
# psctl completion bash >~/.local/share/bash-completion/completions/psctl
_psctl() {
  local current=${COMP_WORDS[COMP_CWORD]}
  mapfile -t COMPREPLY < <("$1" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  case ${COMPREPLY[0]-} in
    :file | :directory)
      local action=-f
      if [[ ${COMPREPLY[0]} == :directory ]]; then action=-d; fi
      compopt -o filenames 2>/dev/null
      if [[ $current == = ]]; then current=""; fi
      mapfile -t COMPREPLY < <(compgen "$action" -- "$current") ;;
    *=) compopt -o nospace 2>/dev/null ;;
  esac
}
complete -F _psctl psctl
)";

constexpr std::string_view kZsh =
    R"(#compdef psctl
# Completes psctl's command line in zsh. For this shell: source <(psctl completion zsh); for all:
# psctl completion zsh >DIR/_psctl, where DIR is one of $fpath.
_psctl() {
  local -a candidates
  candidates=("${(@f)$($words[1] complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  case $candidates[1] in
    '') return 1 ;;
    :file) _files ;;
    :directory) _files -/ ;;
    *=) compadd -S '' -a candidates ;;
    *) compadd -a candidates ;;
  esac
}
if [[ $funcstack[1] == _psctl ]]; then _psctl "$@"; else compdef _psctl psctl; fi
)";

constexpr std::string_view kFish =
    R"(# Completes psctl's command line in fish. For this shell: psctl completion fish | source; for all:
# psctl completion fish >~/.config/fish/completions/psctl.fish
function __psctl_complete
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  set -l candidates ($words[1] complete -- $words[2..-1] "$current" 2>/dev/null)
  switch "$candidates[1]"
    case :file
      __fish_complete_path "$current"
    case :directory
      __fish_complete_directories "$current"
    case '*'
      printf '%s\n' $candidates
  end
end
complete -c psctl -f -a '(__psctl_complete)'
)";

}  // namespace

int CompletionCommand(const CompletionArguments& arguments) {
  switch (arguments.shell) {
    case Shell::kBash:
      fmt::print("{}", kBash);
      break;
    case Shell::kZsh:
      fmt::print("{}", kZsh);
      break;
    case Shell::kFish:
      fmt::print("{}", kFish);
      break;
  }
  return static_cast<int>(ExitCode::kOk);
}

int CompleteCommand(const CompleteArguments& arguments) {
  for (const std::string& one : CompletionCandidates(DescribeCommands(), arguments.words)) {
    fmt::print("{}\n", one);
  }
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace slipstream
