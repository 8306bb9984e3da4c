#include "base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include "base/unique_fd.h"

namespace shunt {
namespace {

using Clock = std::chrono::steady_clock;

tl::unexpected<Error> system_failure(const Command& command, std::string_view verb, int error) {
  const Errc code = error == ENOENT                     ? Errc::NotFound
                    : error == EACCES || error == EPERM ? Errc::Denied
                                                        : Errc::Again;
  return fail(
      code,
      "cannot " + std::string(verb) + " " + command.argv[0] + ": " + std::strerror(error),
      error);
}

// The input goes into memory, not a pipe: nothing to feed while the program runs, and no SIGPIPE
// when it does not read.
Result<UniqueFd> input_file(const Command& command) {
  UniqueFd fd(::memfd_create("stdin", MFD_CLOEXEC));
  if (!fd) {
    return system_failure(command, "make the input of", errno);
  }
  std::string_view rest = command.input;
  while (!rest.empty()) {
    const ssize_t n = ::write(fd.get(), rest.data(), rest.size());
    if (n < 0) {
      return system_failure(command, "make the input of", errno);
    }
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  (void)::lseek(fd.get(), 0, SEEK_SET);  // a memfd can seek
  return fd;
}

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Result<Pipe> output_pipe(const Command& command) {
  std::array<int, 2> fds{};
  if (::pipe2(fds.data(), O_CLOEXEC) != 0) {
    return system_failure(command, "make a pipe for", errno);
  }
  Pipe pipe{UniqueFd(fds[0]), UniqueFd(fds[1])};
  (void)::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);  // cannot fail on a pipe of ours
  return pipe;
}

std::vector<std::string> environment(const Command& command) {
  std::vector<std::string> out;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (std::ranges::none_of(command.env, [&](const auto& own) { return own.first == name; })) {
      out.emplace_back(text);
    }
  }
  for (const auto& [name, value] : command.env) {
    out.emplace_back(name).append("=").append(value);
  }
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  out.reserve(strings.size() + 1);
  for (std::string& s : strings) {
    out.push_back(s.data());
  }
  out.push_back(nullptr);
  return out;
}

class SpawnSetup {
 public:
  SpawnSetup(int in, int out, int diagnostics) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_adddup2(&actions_, in, STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, out, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, diagnostics, STDERR_FILENO);
    ::posix_spawn_file_actions_addclosefrom_np(&actions_, 3);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    sigset_t none{};
    sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    sigset_t all{};
    sigfillset(&all);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;
  ~SpawnSetup() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

// glibc 2.36 declares pidfd_open without extern "C".
int open_pid(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

// A started program; ends it (and its group) unless it was reaped.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid), exit_(open_pid(pid)) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ > 0) {
      (void)::kill(-pid_, SIGKILL);  // gone already: fine
      (void)reap();
    }
  }
  int exit_fd() const { return exit_.get(); }
  int reap() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  pid_t pid_;
  UniqueFd exit_;
};

// Reads what there is. False at the end of the file.
bool read_available(int fd, std::string& into, std::size_t keep) {
  std::array<char, 16384> buffer{};
  for (;;) {
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n <= 0) {
      return n < 0 && (errno == EAGAIN || errno == EINTR);
    }
    const std::size_t room = keep > into.size() ? keep - into.size() : 0;
    into.append(buffer.data(), std::min(room, static_cast<std::size_t>(n)));
  }
}

int millis_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, 3'600'000));
}

// Until the program exits. What it left running may hold the pipes open; nobody waits for that.
Result<CommandOutput> collect(const Command& command, Child& child, Pipe& out, Pipe& diagnostics) {
  CommandOutput output;
  const auto deadline = Clock::now() + command.timeout;
  std::array<pollfd, 4> fds{
      pollfd{out.read.get(), POLLIN, 0},
      pollfd{diagnostics.read.get(), POLLIN, 0},
      pollfd{child.exit_fd(), POLLIN, 0},
      pollfd{command.stop_fd, POLLIN, 0}};
  for (;;) {
    const int ready = ::poll(fds.data(), fds.size(), millis_until(deadline));
    if (ready < 0 && errno != EINTR) {
      return system_failure(command, "wait for", errno);
    }
    if (fds[3].revents != 0) {
      return fail(Errc::Again, command.argv[0] + " was stopped", ECANCELED);
    }
    // One byte above the limit is kept, and shows that there was more.
    if (!read_available(out.read.get(), output.out, command.max_output + 1)) {
      fds[0].fd = -1;
    }
    if (!read_available(diagnostics.read.get(), output.diagnostics, command.max_diagnostics)) {
      fds[1].fd = -1;
    }
    if (output.out.size() > command.max_output) {
      return fail(Errc::Invalid, command.argv[0] + " wrote more than it may");
    }
    if (fds[2].revents != 0) {
      // It has exited before this look, so a second read finds all that it wrote.
      (void)read_available(out.read.get(), output.out, command.max_output);
      output.exit_code = child.reap();
      return output;
    }
    if (Clock::now() >= deadline) {
      return fail(Errc::Again, command.argv[0] + " ran past its deadline", ETIMEDOUT);
    }
  }
}

}  // namespace

Result<CommandOutput> run(const Command& command) {
  if (command.argv.empty()) {
    return fail(Errc::Invalid, "no command");
  }
  auto in = input_file(command);
  if (!in) {
    return tl::unexpected(in.error());
  }
  auto out = output_pipe(command);
  if (!out) {
    return tl::unexpected(out.error());
  }
  auto diagnostics = output_pipe(command);
  if (!diagnostics) {
    return tl::unexpected(diagnostics.error());
  }
  std::vector<std::string> argv = command.argv;
  std::vector<std::string> env = environment(command);
  const SpawnSetup setup(in->get(), out->write.get(), diagnostics->write.get());
  pid_t pid = 0;
  if (const int error = ::posix_spawnp(
          &pid,
          argv[0].c_str(),
          setup.actions(),
          setup.attributes(),
          pointers(argv).data(),
          pointers(env).data());
      error != 0) {
    return system_failure(command, "run", error);
  }
  out->write.reset();
  diagnostics->write.reset();
  Child child(pid);
  if (child.exit_fd() < 0) {
    return system_failure(command, "watch", errno);
  }
  return collect(command, child, *out, *diagnostics);
}

}  // namespace shunt
