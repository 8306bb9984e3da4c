// The TLS side of the server: TLS 1.2 or later, HTTP/1.1, client certificates asked for and not
// demanded, because a client may come with a token instead.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "base/result.h"

namespace shunt::test_api {

// PEM files. An empty `client_ca`: no client certificate is asked for.
Result<std::shared_ptr<SSL_CTX>> make_tls_context(
    const std::string& certificate, const std::string& key, const std::string& client_ca);

}  // namespace shunt::test_api
