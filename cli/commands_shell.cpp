#include <memory>

#include "cli/command_families.h"
#include "cli/commands.h"

namespace sluice::cli {

void add_shell_commands(Command& program) {
  Command& completion =
      program.add("completion", "print a script that makes a shell complete subcommands, options and their values",
                  {"source <(rlhf-run completion bash)         # in ~/.bashrc",
                   "source <(rlhf-run completion zsh)          # in ~/.zshrc, after compinit",
                   "rlhf-run completion fish | source          # in ~/.config/fish/config.fish"});
  const auto shell = std::make_shared<std::string>();
  completion.argument("shell", *shell, Values::one_of({"bash", "zsh", "fish"}), "which one").required();
  completion.runs([shell, &program] { return print_completion(program, *shell); });
}

}  // namespace sluice::cli
