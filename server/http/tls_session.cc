#include "server/http/tls_session.h"

#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "common/security/certificate.h"

namespace slipstream {
namespace {

using ContextHandle = std::unique_ptr<SSL_CTX, OpensslFree<SSL_CTX_free>>;

/// Waits until the connection has what `events` says. Returns false after the deadline.
bool Await(int connection, short events, TlsSession::Deadline deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  if (left.count() <= 0) return false;
  pollfd event = {.fd = connection, .events = events, .revents = 0};
  const auto patience = std::min<std::chrono::milliseconds::rep>(left.count(), 3'600'000);
  const int ready = poll(&event, 1, static_cast<int>(patience));
  return ready > 0 || (ready < 0 && errno == EINTR);
}

/// Waits for what an operation of OpenSSL lacks. Returns false if it lacks nothing that will come.
bool AwaitTls(SSL* ssl, int result, int connection, TlsSession::Deadline deadline) {
  const int lacks = SSL_get_error(ssl, result);
  if (lacks != SSL_ERROR_WANT_READ && lacks != SSL_ERROR_WANT_WRITE) return false;
  return Await(connection, lacks == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, deadline);
}

absl::StatusOr<ContextHandle> MakeContext(const CredentialFiles& files) {
  ContextHandle context(SSL_CTX_new(TLS_server_method()));
  PS_CHECK(context != nullptr);
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  // Each connection has a context of its own, so that no session can be resumed.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET);
  const auto fails = [](const std::string& file) {
    return absl::UnavailableError(file + ": " + TakeOpensslError());
  };
  ERR_clear_error();
  SSL_CTX* const raw = context.get();
  if (SSL_CTX_use_certificate_chain_file(raw, files.certificate.c_str()) != 1) {
    return fails(files.certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(raw, files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return fails(files.key);
  }
  if (SSL_CTX_load_verify_locations(raw, files.ca.c_str(), nullptr) != 1) return fails(files.ca);
  return context;
}

}  // namespace

absl::StatusOr<TlsSession> TlsSession::Accept(const CredentialFiles& files, int connection,
                                              Deadline deadline) {
  const absl::StatusOr<ContextHandle> context = MakeContext(files);
  if (!context.ok()) return context.status();
  Handle ssl(SSL_new(context->get()));  // Has a share in the context.
  PS_CHECK(ssl != nullptr);
  if (SSL_set_fd(ssl.get(), connection) != 1) return absl::UnavailableError(TakeOpensslError());
  while (true) {
    ERR_clear_error();
    const int result = SSL_accept(ssl.get());
    if (result == 1) return TlsSession(std::move(ssl));
    if (AwaitTls(ssl.get(), result, connection, deadline)) continue;
    return absl::UnavailableError("no handshake: " + TakeOpensslError());
  }
}

std::vector<std::string> TlsSession::PeerUris() const {
  if (ssl_ == nullptr) return {};
  const X509Handle certificate(SSL_get1_peer_certificate(ssl_.get()));
  const BioHandle pem(BIO_new(BIO_s_mem()));
  PS_CHECK(pem != nullptr);
  if (certificate == nullptr || PEM_write_bio_X509(pem.get(), certificate.get()) != 1) return {};
  char* text = nullptr;
  const long size = BIO_get_mem_data(pem.get(), &text);
  const auto facts = ParseCertificate({text, static_cast<size_t>(size)});
  return facts.ok() ? facts->uris : std::vector<std::string>();
}

ssize_t TlsSession::Read(int connection, std::span<char> bytes, Deadline deadline) {
  while (ssl_ == nullptr) {
    const ssize_t came = recv(connection, bytes.data(), bytes.size(), 0);
    if (came >= 0) return came;
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return -1;
    if (!Await(connection, POLLIN, deadline)) return -1;
  }
  const int size = static_cast<int>(std::min<size_t>(bytes.size(), 1 << 20));
  while (true) {
    ERR_clear_error();
    const int came = SSL_read(ssl_.get(), bytes.data(), size);
    if (came > 0) return came;
    if (!AwaitTls(ssl_.get(), came, connection, deadline)) return -1;
  }
}

ssize_t TlsSession::Write(int connection, std::string_view bytes, Deadline deadline) {
  std::string_view left = bytes;
  while (!left.empty()) {
    ssize_t sent = 0;
    if (ssl_ == nullptr) {
      sent = send(connection, left.data(), left.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      const bool is_full = sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
      if (sent < 0 && !(is_full && Await(connection, POLLOUT, deadline))) return -1;
    } else {
      ERR_clear_error();
      const int size = static_cast<int>(std::min<size_t>(left.size(), 1 << 20));
      sent = SSL_write(ssl_.get(), left.data(), size);
      const int result = static_cast<int>(sent);
      if (sent <= 0 && !AwaitTls(ssl_.get(), result, connection, deadline)) return -1;
    }
    if (sent > 0) left.remove_prefix(static_cast<size_t>(sent));
    // A peer that takes a little now and then has the same time as any other.
    if (std::chrono::steady_clock::now() >= deadline)
      return left.empty() ? ssize_t(bytes.size()) : -1;
  }
  return static_cast<ssize_t>(bytes.size());
}

}  // namespace slipstream
