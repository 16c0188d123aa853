"""Trains a small network on processors, with one planted fault: python3 train.py FAULT FOLDER.

Most faults run until the file "stop" is in the folder. The others (profiled below) run for a few seconds under a profiler
and leave its file, profile, in the folder.

Each fault takes a fixed share of the program's time, on any machine and beside any other programs. Computing is counted
on the processor's clock, and what a machine waits for on the wall clock. The last line says which share of its time the
fault took, by the program's own clock: measured where it is, or against the fixed program in the same process.
"""
import os
import sys
import threading
import time

began, lost = time.monotonic(), 0.0

import torch
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, IterableDataset

fault, folder = sys.argv[1:]
profiled = {"decode": "stacks", "convert": "stacks", "remote": "stacks", "healthy-stacks": "stacks", "recompute": "trace",
            "tiny-batch": "trace", "healthy-trace": "trace"}.get(fault)
torch.manual_seed(0)
torch.set_num_threads(1)


def there(name):
    return os.path.exists(os.path.join(folder, name))


def write(name):
    open(os.path.join(folder, name), "w").close()


def clock():
    """The time without what this thread waited for a processor that other programs had."""
    with open("/proc/thread-self/schedstat") as f:
        return time.monotonic() - int(f.read().split()[1]) / 1e9


def compute(seconds, work):
    """Does work again and again for seconds of the processor."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        work()


def read_small():
    fd = os.open("data.bin", os.O_RDONLY)
    compute(0.15, lambda: (os.lseek(fd, 0, os.SEEK_SET), [os.read(fd, 64) for _ in range(500)]))
    os.close(fd)


def read_file(n):
    with open(f"tiny/{n}", "rb", buffering=0) as f:
        f.read(256)


def decode():
    sum(range(500))


def convert(rows):
    torch.tensor([[float(v) for v in row] for row in rows])


def fetch():
    import urllib.request
    with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/") as r:
        r.read()


class Samples(IterableDataset):
    """Batches that are made as slowly as the fault says."""

    def __iter__(self):
        x = torch.randn(64, 512)
        rows = x[:4].tolist()
        while True:
            if fault in ("worker", "decode"):
                compute(0.15, decode)
            if fault == "convert":
                compute(0.15, lambda: convert(rows))
            if fault == "small-reads":
                read_small()
            if fault == "tiny-files":
                compute(0.15, lambda: [read_file(n) for n in range(200)])
            if fault == "remote":
                fetch()
            yield x, x * 0.5


loads = ("worker", "decode", "convert", "small-reads", "tiny-files", "remote")
if fault == "small-reads":
    with open("data.bin", "wb") as f:
        f.write(os.urandom(1 << 16))
if fault == "tiny-files":
    os.mkdir("tiny")
    for n in range(200):
        with open(f"tiny/{n}", "wb") as f:
            f.write(os.urandom(200))
if fault == "remote":
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Slow(BaseHTTPRequestHandler):
        def do_GET(self):
            time.sleep(0.2)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(bytes(1 << 10))

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    threading.Thread(target=server.serve_forever, daemon=True).start()
if fault in ("set-up", "compile"):
    waits, since = clock(), time.monotonic()
    print("Downloading the data set" if fault == "set-up" else "Compiling extensions", flush=True)
    while not there("begin"):
        time.sleep(0.2)
        if fault == "compile":
            compute(0.2, decode)
        if time.monotonic() - since > 32:
            write("enough")
    lost = clock() - waits
if fault == "straggler":
    import torch.distributed as dist
    rank = int(os.environ["PET_NODE_RANK"])
    dist.init_process_group("gloo", rank=rank, world_size=2)

model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(3)])
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
loader = iter(DataLoader(Samples(), batch_size=None, num_workers=1 if fault == "worker" else 0))
step, loss, weights = 0, None, torch.randn(4 << 20)
held, lines = [], os.open("log.txt", os.O_WRONLY | os.O_CREAT)


def train(x, y, forward=model):
    global loss
    loss = torch.nn.functional.mse_loss(forward(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def evaluate(x):
    with torch.no_grad():
        model(x)


def share(faulty, fixed):
    """Returns which part of faulty's time fixed saves, as the median of several pairs."""
    parts = []
    for _ in range(7):
        a = time.thread_time()
        faulty()
        b = time.thread_time()
        fixed()
        parts.append(1 - (time.thread_time() - b) / (b - a))
    return sorted(parts)[3]


def traced():
    """Runs under PyTorch's profiler."""
    global lost
    x = torch.randn(64, 512, requires_grad=True)
    if fault == "tiny-batch":
        small = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Tanh()) for _ in range(20)])
        x = torch.randn(16, 16)
        slow, fast = (lambda: [train(x[i:i + 1], x[i:i + 1], small) for i in range(16)]), (
            lambda: [train(x[i:i + 8], x[i:i + 8], small) for i in range(0, 16, 8)])
    else:
        fast = lambda: train(x, x)
        slow = (lambda: train(x, x, lambda x: checkpoint(model, x))) if fault == "recompute" else fast
    slow()
    fast()
    lost = 0 if slow is fast else share(slow, fast)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as p:
        for _ in range(2 if fault == "tiny-batch" else 20):
            slow()
    p.export_chrome_trace(os.path.join(folder, "profile"))
    print(f"lost={lost:.4f}", flush=True)


def sampled(main, done, counts):
    """Samples the main thread's stack, as py-spy record --idle does."""
    sys.setswitchinterval(1e-4)
    while not done.is_set():
        time.sleep(0.01)
        frame, names = sys._current_frames()[main], []
        while frame:
            file = frame.f_code.co_filename.split("-packages/")[-1].split("/python3.11/")[-1]
            names.append(f"{frame.f_code.co_name} ({file}:{frame.f_lineno})")
            frame = frame.f_back
        stack = ";".join(reversed(names))
        counts[stack] = counts.get(stack, 0) + 1


if profiled == "trace":
    traced()
    sys.exit()
done, counts = threading.Event(), {}
if profiled == "stacks":
    sampler = threading.Thread(target=sampled, args=(threading.get_ident(), done, counts))
    sampler.start()

working, started = time.monotonic(), clock()
while not there("stop") and not (profiled and step == 40):
    if time.monotonic() - working > 30:
        write("enough")
        if fault == "after":
            break
    before = clock()
    x, y = next(loader)
    if fault in loads:
        lost += clock() - before
    at = time.monotonic()
    compute(0.05, lambda: train(x, y))
    took = time.monotonic() - at
    step += 1
    before = clock()
    if fault == "sleep":
        time.sleep(3 * took)
    if fault == "save" and step % 20 == 0:
        with open("big.pt", "wb") as f:
            for _ in range(10):
                torch.save(weights, f)
                f.flush()
                time.sleep(4 * took)  # the disk is slow
        print("saved checkpoint", flush=True)
    if fault == "evaluate" and step % 40 == 0:
        compute(4, lambda: evaluate(x))
        print(f"validation loss {loss.item():.4f}", flush=True)
    if fault == "log":
        compute(0.1, lambda: os.write(lines, b"step %d loss %.6f, gradients and weights\n" % (step, loss.item())))
    if fault == "straggler":
        waits = time.monotonic()
        if rank == 1:
            compute(0.2, lambda: train(x, y))
        ends = torch.tensor([float(there("stop"))])
        dist.all_reduce(ends)
        if rank == 0:
            lost += (time.monotonic() - waits) / 2  # equal ranks would share the work
        if ends.item() > 0:
            break
    elif fault not in loads:
        lost += clock() - before
    if fault == "leak":
        while len(held) < 4 * (time.monotonic() - working):
            held.append(torch.ones(1 << 18))
        if time.monotonic() - working > 125:
            write("enough-for-leak")
    if step % 5 == 0:
        print(f"step={step} loss={loss.item():.4f}", flush=True)
if fault == "after":
    waits = clock()
    while not there("stop"):
        time.sleep(0.2)
    lost = clock() - waits
if profiled:
    done.set()
    sampler.join()
    with open(os.path.join(folder, "profile"), "w") as f:
        f.writelines(f"{stack} {n}\n" for stack, n in counts.items())
print(f"lost={lost / (clock() - (started if profiled else began)):.4f}", flush=True)
