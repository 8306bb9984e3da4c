// The daemon: flags -> Options -> app; the exit code, and nothing else.

#include <cstdio>
#include <exception>

#include "app/app.h"
#include "base/memory.h"
#include "config/options.h"

int main(int argc, char** argv) {
  shunt::take_memory_in_large_steps();
  try {
    const auto invocation = shunt::config::parse_command_line(argc, argv);
    if (!invocation) {
      std::fprintf(stderr, "kube-shunt: %s\n", invocation.error().what.c_str());
      return 2;
    }
    if (invocation->exit_code) {
      std::fputs(invocation->diagnostics.c_str(), stderr);
      std::fputs(invocation->text.c_str(), stdout);
      return *invocation->exit_code;
    }
    if (const auto outcome = shunt::app::run(*invocation); !outcome) {
      std::fprintf(stderr, "kube-shunt: %s\n", outcome.error().what.c_str());
      return 1;
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kube-shunt: %s\n", error.what());
    return 1;
  }
}
