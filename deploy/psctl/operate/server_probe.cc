#include "deploy/psctl/operate/server_probe.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <system_error>

#include "common/process/steady_time.h"
#include "common/security/openssl_handles.h"

namespace slipstream {
namespace {

// The preface of an HTTP/2 client, with an empty SETTINGS frame.
constexpr std::string_view kPreface("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);
constexpr size_t kFrameHeaderBytes = 9;
constexpr char kSettingsFrame = 4;
constexpr char kTlsAlertRecord = 21;

struct FreeAddresses {
  void operator()(addrinfo* addresses) const { freeaddrinfo(addresses); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

absl::StatusOr<Addresses> Resolve(std::string host, const std::string& port) {
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (error == 0) return Addresses(found);
  const std::string reason =
      error == EAI_SYSTEM ? std::generic_category().message(errno) : gai_strerror(error);
  return absl::NotFoundError(reason);
}

/// Waits for `events`. Returns false if there were none until the deadline.
bool Await(int socket, short events, absl::Time deadline) {
  for (;;) {
    const absl::Duration left = std::max(deadline - SteadyNow(), absl::ZeroDuration());
    pollfd waiting = {.fd = socket, .events = events, .revents = 0};
    const int ready = poll(&waiting, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

absl::StatusOr<FileDescriptor> ConnectToOne(const addrinfo& address, absl::Time deadline) {
  FileDescriptor connection(
      socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!connection.is_open()) return absl::UnavailableError(std::generic_category().message(errno));
  if (connect(connection.get(), address.ai_addr, address.ai_addrlen) == 0) return connection;
  int error = errno;
  if (error == EINPROGRESS) {
    if (!Await(connection.get(), POLLOUT, deadline)) {
      return absl::UnavailableError("nothing has answered in time");
    }
    socklen_t length = sizeof(error);
    getsockopt(connection.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  }
  if (error == 0) return connection;
  return absl::UnavailableError(std::generic_category().message(error));
}

FirstWords Judge(std::string_view words) {
  if (words.size() > 3 && words[0] == kTlsAlertRecord && words[1] == 3)
    return FirstWords::kTlsAlert;
  if (words.size() >= kFrameHeaderBytes && words[3] == kSettingsFrame) return FirstWords::kHttp2;
  return FirstWords::kOther;
}

struct FreeTls {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* tls) const { SSL_free(tls); }
};

/// One end of TLS over a socket that does not block.
class TlsClient {
 public:
  TlsClient(const FileDescriptor& connection, const std::string& host, const CredentialFiles& files)
      : socket_(connection.get()),
        context_(SSL_CTX_new(TLS_client_method())),
        tls_(NewTls(context_.get(), files)) {
    SSL_set_fd(tls_.get(), socket_);
    in6_addr address;
    const bool is_name = inet_pton(AF_INET, host.c_str(), &address) != 1 && !host.starts_with('[');
    if (is_name) SSL_set_tlsext_host_name(tls_.get(), host.c_str());
  }

  SSL* tls() const { return tls_.get(); }

  /// Repeats `step` until it does not have to wait, and returns its last result.
  template <typename Step>
  int Run(Step step, absl::Time deadline) {
    for (;;) {
      ERR_clear_error();
      errno = 0;
      const int result = step();
      if (result > 0) return result;
      const int error = SSL_get_error(tls_.get(), result);
      if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) return result;
      const short events = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
      if (Await(socket_, events, deadline)) continue;
      is_late_ = true;
      return result;
    }
  }

  bool is_late() const { return is_late_; }

 private:
  static SSL* NewTls(SSL_CTX* context, const CredentialFiles& files) {
    // Any certificate is taken here; the caller checks it afterwards.
    SSL_CTX_set_verify(context, SSL_VERIFY_NONE, nullptr);
    constexpr unsigned char kProtocols[] = {2, 'h', '2'};
    SSL_CTX_set_alpn_protos(context, kProtocols, sizeof(kProtocols));
    if (!files.certificate.empty()) {  // CheckCredentials has found nothing wrong with them.
      SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str());
      SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM);
    }
    return SSL_new(context);
  }

  const int socket_;
  const std::unique_ptr<SSL_CTX, FreeTls> context_;
  const std::unique_ptr<SSL, FreeTls> tls_;
  bool is_late_ = false;
};

std::string ChainOf(SSL* tls) {
  const BioHandle memory(BIO_new(BIO_s_mem()));
  STACK_OF(X509)* const chain = SSL_get_peer_cert_chain(tls);
  for (int i = 0; i < sk_X509_num(chain); ++i) {
    PEM_write_bio_X509(memory.get(), sk_X509_value(chain, i));
  }
  const char* bytes = nullptr;
  const long length = BIO_get_mem_data(memory.get(), &bytes);
  return {bytes, static_cast<size_t>(length)};
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ResolveHost(const std::string& host) {
  const absl::StatusOr<Addresses> found = Resolve(host, "1");
  if (!found.ok()) return found.status();
  std::vector<std::string> texts;
  for (const addrinfo* address = found->get(); address != nullptr; address = address->ai_next) {
    std::array<char, NI_MAXHOST> text = {};
    getnameinfo(address->ai_addr, address->ai_addrlen, text.data(), text.size(), nullptr, 0,
                NI_NUMERICHOST);
    texts.emplace_back(text.data());
  }
  return texts;
}

absl::StatusOr<FileDescriptor> ConnectTo(const ServerAddress& server, absl::Time deadline) {
  const absl::StatusOr<Addresses> found = Resolve(server.host, std::to_string(server.port));
  if (!found.ok()) return found.status();
  absl::StatusOr<FileDescriptor> connection = absl::UnavailableError("the name has no address");
  for (const addrinfo* address = found->get(); address != nullptr; address = address->ai_next) {
    connection = ConnectToOne(*address, deadline);
    if (connection.ok()) break;
  }
  return connection;
}

FirstWords GreetInPlaintext(const FileDescriptor& connection, absl::Time deadline) {
  // The buffer of a new connection takes such a short message at once.
  if (send(connection.get(), kPreface.data(), kPreface.size(), MSG_NOSIGNAL) < 0) {
    return FirstWords::kClosed;
  }
  std::string words;
  std::array<char, 256> bytes;
  while (words.size() < kFrameHeaderBytes) {
    if (!Await(connection.get(), POLLIN, deadline)) break;
    const ssize_t count = recv(connection.get(), bytes.data(), bytes.size(), 0);
    if (count <= 0) return words.empty() ? FirstWords::kClosed : Judge(words);
    words.append(bytes.data(), static_cast<size_t>(count));
  }
  return words.empty() ? FirstWords::kNothing : Judge(words);
}

absl::StatusOr<TlsHandshake> ShakeHands(const FileDescriptor& connection, const std::string& host,
                                        const CredentialFiles& files, absl::Time deadline) {
  TlsClient client(connection, host, files);
  SSL* const tls = client.tls();
  if (client.Run([tls] { return SSL_connect(tls); }, deadline) <= 0) {
    const bool has_reason = ERR_peek_last_error() != 0;
    if (client.is_late()) return absl::UnavailableError("nothing has answered in time");
    return absl::UnavailableError(has_reason ? TakeOpensslError() : "the server closed it");
  }
  TlsHandshake shown = {.protocol = SSL_get_version(tls), .certificate = ChainOf(tls)};
  // With TLS 1.3 the server checks our certificate only now.
  client.Run([tls] { return SSL_write(tls, kPreface.data(), static_cast<int>(kPreface.size())); },
             deadline);
  std::array<char, 256> bytes;
  const int count = client.Run(
      [&] { return SSL_read(tls, bytes.data(), static_cast<int>(bytes.size())); }, deadline);
  if (count > 0) {
    shown.then = Judge({bytes.data(), static_cast<size_t>(count)});
  } else if (!client.is_late()) {
    const bool is_alert = ERR_peek_last_error() != 0;
    shown.then = is_alert ? FirstWords::kTlsAlert : FirstWords::kClosed;
    if (is_alert) shown.alert = TakeOpensslError();
  }
  return shown;
}

}  // namespace slipstream
