#include "health/status_server.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace shunt::health {

Result<std::unique_ptr<StatusServer>> StatusServer::start(
    const std::string& path, std::function<std::string()> answer) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return fail(Errc::Invalid, "status socket " + path + ": the path is too long");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  (void)::unlink(path.c_str());  // a socket that an earlier run left
  const mode_t before = ::umask(0177);
  const bool bound =
      listener &&
      ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::listen(listener.get(), 16) == 0;
  const int error = errno;
  (void)::umask(before);  // cannot fail
  if (!bound) {
    return fail(Errc::Denied, "status socket " + path + ": " + std::strerror(error), error);
  }
  return std::unique_ptr<StatusServer>(
      new StatusServer(path, std::move(listener), std::move(answer)));
}

StatusServer::StatusServer(std::string path, UniqueFd listener, std::function<std::string()> answer)
    : path_(std::move(path)), listener_(std::move(listener)), answer_(std::move(answer)) {
  thread_ = std::thread([this] { serve(); });
}

StatusServer::~StatusServer() {
  stop_.ring();
  thread_.join();
  (void)::unlink(path_.c_str());  // best effort
}

void StatusServer::serve() {
  (void)::pthread_setname_np(::pthread_self(), "status");  // a name is a nicety
  for (;;) {
    pollfd descriptors[2] = {{listener_.get(), POLLIN, 0}, {stop_.fd(), POLLIN, 0}};
    (void)::poll(descriptors, 2, -1);  // EINTR: look again
    if (descriptors[1].revents != 0) {
      return;
    }
    const UniqueFd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!peer) {
      continue;
    }
    const timeval patience{2, 0};  // a peer that does not read holds up the next one only so long
    (void)::setsockopt(peer.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    const std::string line = answer_() + "\n";
    (void)::send(
        peer.get(), line.data(), line.size(), MSG_NOSIGNAL);  // a peer that left wants no answer
  }
}

}  // namespace shunt::health
