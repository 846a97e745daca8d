# For a tap: `brew install tidewheel/tap/tidewheel`. A release sets the sum (docs/releasing.md).
class Tidewheel < Formula
  desc "Redis-protocol server whose keys expire on time"
  homepage "https://github.com/tidewheel/tidewheel"
  url "https://github.com/tidewheel/tidewheel/archive/refs/tags/v0.1.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license any_of: ["MIT", "Apache-2.0"]
  head "https://github.com/tidewheel/tidewheel.git", branch: "main"

  depends_on "rust" => :build

  def install
    system "cargo", "install", *std_cargo_args(path: "crates/server")
    (buildpath/"tidewheel.1").write Utils.safe_popen_read(bin/"tidewheel", "man")
    man1.install "tidewheel.1"
    generate_completions_from_executable(bin/"tidewheel", "completions")
    inreplace "docs/tidewheel.conf", "#dir tidewheel-data", "dir #{var}/lib/tidewheel"
    etc.install "docs/tidewheel.conf"
  end

  service do
    run [opt_bin/"tidewheel", etc/"tidewheel.conf"]
    keep_alive successful_exit: false
    log_path var/"log/tidewheel.log"
    error_log_path var/"log/tidewheel.log"
    working_dir var
  end

  test do
    port = free_port
    server = spawn bin/"tidewheel", "--port", port.to_s, "--save", ""
    sleep 2
    TCPSocket.open("127.0.0.1", port) do |client|
      client.write "PING\r\n"
      assert_equal "+PONG\r\n", client.gets
    end
  ensure
    Process.kill "TERM", server
    Process.wait server
  end
end
