#include "apiserver/reflector.h"

#include "apiserver/http_stream.h"
#include "apiserver/list_watch.h"
#include "apiserver/stop_waiter.h"
#include "base/log.h"
#include "base/stoppable_thread.h"

namespace shunt::apiserver {

template <typename T>
class Reflector<T>::Impl {
 public:
  Impl(Connector& connector, ReflectorOptions options, Outbox& outbox)
      : waiter_(thread_.stop_fd()),
        stream_(
            connector,
            {.stall_timeout = options.stall_timeout, .limits = {}, .stop_fd = thread_.stop_fd()}),
        list_watch_(std::move(options), stream_, waiter_, seeded_random(), outbox) {}
  ~Impl() { stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void start() {
    thread_.start("watch", [this] { list_watch_.run(); });
  }
  void stop() { thread_.stop(); }
  ReflectorStatus status() const { return list_watch_.status(); }

 private:
  StoppableThread thread_;  // before what waits on its descriptor
  StopWaiter waiter_;
  HttpStream stream_;
  ListWatch<T> list_watch_;
};

template <typename T>
Reflector<T>::Reflector(Connector& connector, ReflectorOptions options, Outbox& outbox)
    : impl_(std::make_unique<Impl>(connector, std::move(options), outbox)) {}
template <typename T>
Reflector<T>::~Reflector() = default;
template <typename T>
void Reflector<T>::start() {
  impl_->start();
}
template <typename T>
void Reflector<T>::stop() {
  impl_->stop();
}
template <typename T>
ReflectorStatus Reflector<T>::status() const {
  return impl_->status();
}

template class Reflector<kube::Service>;
template class Reflector<kube::EndpointSlice>;
template class Reflector<kube::Node>;
template class Reflector<kube::ServiceCidr>;

}  // namespace shunt::apiserver
