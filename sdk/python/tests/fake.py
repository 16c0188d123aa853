"""An agent of a few lines on the loopback interface, and a clock that is set by hand."""

import http.server
import json
import threading


class FakeAgent:
    """Answers like the agent, and remembers what it was told."""

    token = "secret-token"

    def __init__(self):
        self.requests = []  # (method, path, body)
        self.state = {"should_checkpoint": False, "should_stop": False, "spent": "0", "currency": "USD",
                      "budget_left": None, "time_to_deadline_s": None}
        self.refuse = 0  # status to answer with instead
        self.raw = None  # answer to /v1/state instead of the state
        self.release = threading.Event()  # a request waits for it where hang is set
        self.hang = False
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                fake.requests.append((self.command, self.path, body))
                if fake.hang:
                    fake.release.wait(30)
                status, data = 204, b""
                if fake.refuse:
                    status = fake.refuse
                    data = json.dumps({"detail": "too often"}).encode()
                elif self.headers.get("Authorization") != "Bearer " + fake.token:
                    status = 401
                elif self.command == "GET" and self.path == "/v1/state":
                    status = 200
                    data = fake.raw if fake.raw is not None else json.dumps(fake.state).encode()
                elif (self.command, self.path) not in (("POST", "/v1/progress"), ("POST", "/v1/saved")):
                    status = 404
                try:
                    self.send_response(status)
                    if status != 204:
                        self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                except OSError:
                    pass  # the client went away

            do_GET = do_POST = answer

            def log_message(self, *args):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.url = "http://127.0.0.1:%d" % self._server.server_address[1]
        self.env = {"SCRIMP_JOB": "job-1", "SCRIMP_AGENT_URL": self.url, "SCRIMP_AGENT_TOKEN": self.token}

    def close(self):
        self.release.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def sent(self, path):
        return [json.loads(body) for method, p, body in self.requests if method == "POST" and p == path]

    def asked(self):
        return sum(1 for method, p, _ in self.requests if (method, p) == ("GET", "/v1/state"))


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now
