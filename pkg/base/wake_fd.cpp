#include "base/wake_fd.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace shunt {

WakeFd::WakeFd() : fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!fd_) {
    throw std::system_error(errno, std::generic_category(), "eventfd");
  }
}

void WakeFd::ring() {
  const std::uint64_t one = 1;
  (void)!::write(fd_.get(), &one, sizeof one);  // EAGAIN means it rings already
}

void WakeFd::clear() {
  std::uint64_t count = 0;
  (void)!::read(fd_.get(), &count, sizeof count);  // EAGAIN means nobody rang
}

}  // namespace shunt
