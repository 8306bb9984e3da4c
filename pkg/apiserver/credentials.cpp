#include "apiserver/credentials.h"

#include <cerrno>

#include "apiserver/base64.h"
#include "apiserver/deadline.h"
#include "base/log.h"
#include "base/trimmed.h"

namespace shunt::apiserver {
namespace {

using log::kv;

constexpr std::chrono::seconds kTokenAge{50};  // kubelet rotates long before

Result<std::string> read_pem(const PemSource& source) {
  if (source.file.empty()) {
    return source.data;
  }
  auto text = read_small_file(source.file);
  if (text && text->empty()) {
    return fail(Errc::Invalid, source.file + ": empty");
  }
  return text;
}

// A line break in a token would write headers of its own.
bool is_header_value(const std::string& text) {
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) < ' ' && c != '\t') || c == 0x7f) {
      return false;
    }
  }
  return true;
}

Result<TlsMaterial> read_material(const Access& access, bool ca_may_be_missing) {
  TlsMaterial out;
  auto ca = read_pem(access.ca);
  if (!ca && !ca_may_be_missing) {
    return fail("CA certificates", ca.error());
  }
  out.ca = ca.value_or("");
  auto certificate = read_pem(access.certificate);
  if (!certificate) {
    return fail("client certificate", certificate.error());
  }
  auto key = read_pem(access.key);
  if (!key) {
    return fail("client key", key.error());
  }
  out.certificate = std::move(*certificate);
  out.key = std::move(*key);
  return out;
}

}  // namespace

Credentials::Credentials(Access access, TimeSource time)
    : access_(std::move(access)), time_(std::move(time)) {}

Result<std::unique_ptr<Credentials>> Credentials::open(Access access, TimeSource time) {
  std::unique_ptr<Credentials> out(new Credentials(std::move(access), std::move(time)));
  const std::lock_guard lock(out->mutex_);
  if (out->access_.server.tls) {
    if (auto read = out->read_files(/*first=*/true); !read) {
      return tl::unexpected(read.error());
    }
    if (auto read = out->read_token(/*first=*/true); !read) {
      return tl::unexpected(read.error());
    }
  }
  if (!out->access_.exec || !out->access_.server.tls) {
    if (auto built = out->rebuild(); !built) {
      return tl::unexpected(built.error());
    }
  }
  return out;
}

Result<std::shared_ptr<const Identity>> Credentials::current(int stop_fd) {
  std::unique_lock lock(mutex_);
  if (!access_.server.tls) {
    return identity_;
  }
  (void)read_files(/*first=*/false);  // says so itself, and keeps what it has
  (void)read_token(/*first=*/false);
  if (auto used = use_plugin(lock, stop_fd); !used) {
    return tl::unexpected(used.error());
  }
  if (auto built = rebuild(); !built) {
    return tl::unexpected(built.error());
  }
  return identity_;
}

void Credentials::refused(std::uint64_t generation) {
  const std::lock_guard lock(mutex_);
  if (identity_ && identity_->generation == generation) {
    token_refused_ = true;
    plugin_.reset();
  }
}

Result<> Credentials::read_files(bool first) {
  // A CA that was there once is not given up for this system's roots.
  auto material = read_material(access_, access_.ca_may_be_missing && files_.ca.empty());
  if (material && (first || *material != files_)) {
    // Halfway through a rotation the key may not fit the certificate: then the pair is no good yet.
    if (auto usable = TlsContext::make(*material); !usable) {
      material = tl::unexpected(usable.error());
    }
  }
  if (!material) {
    if (!first && material.error().what != files_complaint_) {
      files_complaint_ = material.error().what;
      log::warn(
          "cannot reload TLS files, keeping what was read before", {kv("error", files_complaint_)});
    }
    return tl::unexpected(material.error());
  }
  if (first && material->ca.empty() && !access_.ca.empty()) {
    log::error(
        "cannot read the cluster's CA certificates, using those of this system",
        {kv("file", access_.ca.file)});
  }
  files_complaint_.clear();
  files_ = std::move(*material);
  return {};
}

Result<> Credentials::read_token(bool first) {
  if (first) {
    token_ = access_.token;
  }
  const auto now = time_.now();
  if (access_.token_file.empty() || (!first && !token_refused_ && now - token_read_ <= kTokenAge)) {
    return {};
  }
  token_read_ = now;
  token_refused_ = false;
  auto text = read_small_file(access_.token_file);
  if (text) {
    *text = std::string(trimmed(*text, " \t\r\n"));
    if (text->empty()) {
      text = fail(Errc::Invalid, access_.token_file + ": empty");
    }
  }
  if (text) {
    token_ = std::move(*text);
    return {};
  }
  if (token_.empty()) {
    return fail("token", text.error());
  }
  log::warn("cannot read the token, keeping the last one", {kv("error", text.error().what)});
  return {};
}

// A token of the kubeconfig wins over the plugin, as in client-go.
bool Credentials::plugin_is_due() const {
  if (!access_.exec || !token_.empty()) {
    return false;
  }
  return !plugin_ || (plugin_->expires && *plugin_->expires <= time_.unix_seconds());
}

Result<> Credentials::use_plugin(std::unique_lock<std::mutex>& lock, int stop_fd) {
  while (plugin_is_due()) {
    if (stop_asked(stop_fd)) {
      return fail(Errc::Again, "stopped", ECANCELED);
    }
    if (plugin_runs_) {
      // The one that runs it may not be the one that is asked to stop.
      plugin_done_.wait_for(lock, std::chrono::milliseconds(100));
      continue;
    }
    plugin_runs_ = true;
    const std::string ca = files_.ca;
    lock.unlock();
    auto credential = run_exec_plugin(access_, ca, stop_fd);
    lock.lock();
    plugin_runs_ = false;
    plugin_done_.notify_all();
    if (!credential) {
      return tl::unexpected(credential.error());
    }
    plugin_ = std::move(*credential);
    if (plugin_->expires && *plugin_->expires <= time_.unix_seconds()) {
      log::warn("the exec plugin gave a credential that has expired already");
      return {};
    }
  }
  return {};
}

Result<> Credentials::rebuild() {
  auto next = std::make_shared<Identity>();
  TlsMaterial material = files_;
  if (plugin_ && !plugin_->certificate.empty()) {
    material.certificate = plugin_->certificate;
    material.key = plugin_->key;
  }
  if (access_.server.tls) {
    next->headers = headers();
    for (const auto& [name, value] : next->headers) {
      if (!is_header_value(value)) {
        return fail(Errc::Invalid, "the value for the header " + name + " has control characters");
      }
    }
    if (identity_ && material == tls_material_) {
      next->tls = identity_->tls;
    } else if (auto tls = TlsContext::make(material); tls) {
      next->tls = std::move(*tls);
    } else {
      return tl::unexpected(tls.error());
    }
  }
  if (identity_ && identity_->tls == next->tls && identity_->headers == next->headers) {
    return {};
  }
  next->generation = identity_ ? identity_->generation + 1 : 1;
  tls_material_ = std::move(material);
  identity_ = std::move(next);
  return {};
}

Headers Credentials::headers() const {
  Headers out;
  if (!token_.empty()) {
    out.emplace_back("Authorization", "Bearer " + token_);
  } else if (plugin_ && !plugin_->token.empty()) {
    out.emplace_back("Authorization", "Bearer " + plugin_->token);
  } else if (!access_.username.empty() || !access_.password.empty()) {
    out.emplace_back(
        "Authorization", "Basic " + base64_encode(access_.username + ":" + access_.password));
  }
  out.insert(out.end(), access_.impersonation.begin(), access_.impersonation.end());
  return out;
}

}  // namespace shunt::apiserver
