#include "runner/children.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <numeric>
#include <system_error>

#include "base/unique_fd.h"

namespace shunt::conformance {
namespace {

using Clock = std::chrono::steady_clock;

// A child's answer begins with one of these.
constexpr char kReport = 'r';
constexpr char kThrown = 't';

constexpr std::chrono::seconds kGrace{10};  // between SIGTERM and SIGKILL

[[noreturn]] void raise_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

sigset_t ending_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    ::sigaddset(&signals, number);
  }
  return signals;
}

// The ending signals as a descriptor; as before when it goes.
class Signals {
 public:
  Signals() {
    const sigset_t signals = ending_signals();
    ::pthread_sigmask(SIG_BLOCK, &signals, &before_);
    fd_.reset(::signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));
  }
  ~Signals() { restore(); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int fd() const { return fd_.get(); }
  void restore() const { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  // The signal that came, or 0.
  int take() const {
    signalfd_siginfo info{};
    return ::read(fd_.get(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo)
                                                                : 0;
  }

 private:
  sigset_t before_{};
  UniqueFd fd_;
};

void write_all(int fd, const std::string& text) {
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t n = ::write(fd, text.data() + sent, text.size() - sent);
    if (n < 0) {
      return;  // the parent is gone, and with it whoever would read
    }
    sent += static_cast<std::size_t>(n);
  }
}

[[noreturn]] void be_child(const Child& child, const Signals& signals, int answer, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    (void)::signal(number, SIG_DFL);  // fails for no signal that can be caught
  }
  signals.restore();
  if (::getppid() != parent) {
    ::_exit(1);
  }
  try {
    write_all(answer, kReport + child.work());
  } catch (const std::exception& error) {
    write_all(answer, kThrown + std::string(error.what()));
  }
  ::_exit(0);  // no destructors: what lives here besides `work` is the parent's
}

struct Running {
  std::size_t index = 0;
  pid_t pid = -1;
  UniqueFd answer;
  std::string text;
  Clock::time_point deadline;
  bool too_long = false;
};

Running start(std::size_t index, const Child& child, const Signals& signals) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0 || ::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) {
    raise_errno("pipe");
  }
  Running running;
  running.index = index;
  running.answer.reset(ends[0]);
  const UniqueFd write_end(ends[1]);
  running.deadline =
      child.limit.count() > 0 ? Clock::now() + child.limit : Clock::time_point::max();
  const pid_t parent = ::getpid();
  running.pid = ::fork();
  if (running.pid < 0) {
    raise_errno("fork");
  }
  if (running.pid == 0) {
    be_child(child, signals, write_end.get(), parent);
  }
  return running;
}

// False once the child has closed its end.
bool read_some(Running& running) {
  std::array<char, 65536> buffer{};
  while (true) {
    const ssize_t n = ::read(running.answer.get(), buffer.data(), buffer.size());
    if (n > 0) {
      running.text.append(buffer.data(), static_cast<std::size_t>(n));
    } else {
      return n < 0 && (errno == EAGAIN || errno == EINTR);
    }
  }
}

ChildEnd end_of(const Running& running, int status, std::chrono::seconds limit) {
  ChildEnd end;
  if (running.too_long) {
    end.problem = fmt::format("did not end within {} s", limit.count());
  } else if (WIFSIGNALED(status)) {
    end.problem = fmt::format("died: {}", ::strsignal(WTERMSIG(status)));
  } else if (WEXITSTATUS(status) != 0 || running.text.empty()) {
    end.problem = fmt::format("ended with {} and no answer", WEXITSTATUS(status));
  } else if (running.text.front() == kThrown) {
    end.problem = running.text.substr(1);
  } else {
    end.report = running.text.substr(1);
  }
  return end;
}

class Pool {
 public:
  Pool(
      const std::vector<Child>& children,
      std::size_t at_once,
      const std::function<void(std::size_t, ChildEnd)>& done)
      : children_(&children), at_once_(std::max<std::size_t>(at_once, 1)), done_(&done) {
    waiting_.resize(children.size());
    std::iota(waiting_.rbegin(), waiting_.rend(), 0);  // taken from the back
    std::stable_sort(waiting_.begin(), waiting_.end(), [&](std::size_t a, std::size_t b) {
      return children[a].expected < children[b].expected;
    });
  }

  ~Pool() { end_all(); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int run() {
    while (!waiting_.empty() || !running_.empty()) {
      while (!waiting_.empty() && running_.size() < at_once_) {
        const std::size_t index = waiting_.back();
        waiting_.pop_back();
        running_.push_back(start(index, (*children_)[index], signals_));
      }
      wait();
      kill_overdue();
      if (const int number = signals_.take()) {
        end_all();
        return number;
      }
    }
    return 0;
  }

 private:
  void wait() {
    std::vector<pollfd> waited{{.fd = signals_.fd(), .events = POLLIN, .revents = 0}};
    for (const Running& running : running_) {
      waited.push_back({.fd = running.answer.get(), .events = POLLIN, .revents = 0});
    }
    ::poll(waited.data(), waited.size(), 1000);
    std::erase_if(running_, [&](Running& running) {
      if (read_some(running)) {
        return false;
      }
      int status = 0;
      ::waitpid(running.pid, &status, 0);
      (*done_)(running.index, end_of(running, status, (*children_)[running.index].limit));
      return true;
    });
  }

  void kill_overdue() {
    for (Running& running : running_) {
      if (!running.too_long && Clock::now() > running.deadline) {
        running.too_long = true;
        ::kill(running.pid, SIGKILL);
      }
    }
  }

  void end_all() {
    for (const Running& running : running_) {
      ::kill(running.pid, SIGTERM);
    }
    const Clock::time_point deadline = Clock::now() + kGrace;
    for (Running& running : running_) {
      while (::waitpid(running.pid, nullptr, WNOHANG) == 0) {
        if (Clock::now() > deadline) {
          ::kill(running.pid, SIGKILL);
        }
        ::poll(nullptr, 0, 5);
      }
    }
    running_.clear();
  }

  const std::vector<Child>* children_;
  std::size_t at_once_;
  const std::function<void(std::size_t, ChildEnd)>* done_;
  Signals signals_;
  std::vector<std::size_t> waiting_;
  std::vector<Running> running_;
};

}  // namespace

int run_children(
    const std::vector<Child>& children,
    std::size_t at_once,
    const std::function<void(std::size_t, ChildEnd)>& done) {
  return Pool(children, at_once, done).run();
}

}  // namespace shunt::conformance
