#include "netns/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <system_error>

namespace shunt::lab {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (const std::string& word : words) {
    result.push_back(const_cast<char*>(word.c_str()));  // execve does not write
  }
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> environment(const std::vector<std::string>& added) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    result.emplace_back(*entry);
  }
  result.insert(result.end(), added.begin(), added.end());
  return result;
}

void redirect(int fd, int target) {
  if (fd >= 0) {
    ::dup2(fd, target);
  }
}

// After vfork, in the parent's memory: system calls only.
[[noreturn]] void become(
    int netns_fd, char* const* argv, char* const* env, int input, int output, int errors) {
  for (const int signal_number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    ::signal(signal_number, SIG_DFL);  // our handlers are not the child's business
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (netns_fd >= 0 && ::setns(netns_fd, CLONE_NEWNET) != 0) {
    ::_exit(126);
  }
  redirect(input, STDIN_FILENO);
  redirect(output, STDOUT_FILENO);
  redirect(errors, STDERR_FILENO);
  ::execvpe(argv[0], argv, env);
  ::_exit(127);
}

pid_t start(
    int netns_fd,
    const std::vector<std::string>& argv,
    const std::vector<std::string>& env,
    int input,
    int output,
    int errors) {
  const std::vector<char*> arguments = pointers(argv);
  const std::vector<std::string> variables = environment(env);
  const std::vector<char*> variable_pointers = pointers(variables);
  sigset_t all;  // blocked until the child has shed our handlers
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  // fork would copy the page tables of a process that holds the whole bank, and then each page that
  // the parent writes: a third of a case's time.
  const pid_t pid = ::vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork): as above
  if (pid != 0) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  if (pid < 0) {
    throw std::system_error(errno, std::generic_category(), "vfork");
  }
  if (pid == 0) {
    become(netns_fd, arguments.data(), variable_pointers.data(), input, output, errors);
  }
  return pid;
}

UniqueFd file_in_memory(const std::string& content) {
  UniqueFd fd(::memfd_create("input", MFD_CLOEXEC));
  if (!fd ||
      ::write(fd.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size()) ||
      ::lseek(fd.get(), 0, SEEK_SET) != 0) {
    throw std::system_error(errno, std::generic_category(), "memfd");
  }
  return fd;
}

}  // namespace

Process::Process(const Netns& where, const ProcessSpec& spec) {
  UniqueFd log;
  if (!spec.log_file.empty()) {
    log.reset(::open(spec.log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!log) {
      throw std::system_error(errno, std::generic_category(), spec.log_file);
    }
  }
  const UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  pid_ = start(where.fd(), spec.argv, spec.env, nothing.get(), log.get(), log.get());
  pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      status_(other.status_) {}

Process& Process::operator=(Process&& other) noexcept {
  if (this != &other) {
    kill();
    pid_ = std::exchange(other.pid_, -1);
    pidfd_ = std::move(other.pidfd_);
    status_ = other.status_;
  }
  return *this;
}

Process::~Process() { kill(); }

bool Process::running() { return pid_ > 0 && !wait(std::chrono::milliseconds(0)); }

std::optional<int> Process::wait(std::chrono::milliseconds timeout) {
  if (status_ || pid_ <= 0) {
    return status_;
  }
  pollfd ended{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
  if (::poll(&ended, 1, static_cast<int>(timeout.count())) > 0) {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    status_ = status;
  }
  return status_;
}

void Process::signal(int signal_number) const {
  if (pid_ > 0 && !status_) {
    ::kill(pid_, signal_number);
  }
}

int Process::terminate(std::chrono::milliseconds grace) {
  signal(SIGTERM);
  if (!wait(grace)) {
    kill();
  }
  return status_.value_or(-1);
}

void Process::kill() {
  if (pid_ > 0 && !status_) {
    signal(SIGKILL);
    wait(std::chrono::seconds(10));
  }
}

std::string run_program(const std::vector<std::string>& argv, const std::string& input) {
  const UniqueFd in = file_in_memory(input);
  std::array<int, 2> out{};
  if (::pipe2(out.data(), O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "pipe");
  }
  const UniqueFd out_read(out[0]);
  UniqueFd out_write(out[1]);
  const pid_t pid = start(-1, argv, {}, in.get(), out_write.get(), out_write.get());
  out_write.reset();
  std::string output;
  std::array<char, 4096> buffer{};
  for (ssize_t n = 0; (n = ::read(out_read.get(), buffer.data(), buffer.size())) > 0;) {
    output.append(buffer.data(), static_cast<std::size_t>(n));
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (status != 0) {
    std::string command;
    for (const std::string& word : argv) {
      command += word + " ";
    }
    throw std::runtime_error(command + "failed: " + output + input);
  }
  return output;
}

}  // namespace shunt::lab
