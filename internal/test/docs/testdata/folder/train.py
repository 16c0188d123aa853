import argparse, json, os, signal, sys, time

p = argparse.ArgumentParser()
p.add_argument("--steps", type=int, default=20)
p.add_argument("--output_dir", default="ckpt")
args = p.parse_args()

stop = []
signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
os.makedirs(args.output_dir, exist_ok=True)
path = os.path.join(args.output_dir, "state.json")
step, loss = 0, 4.0
if os.path.exists(path):  # resume
    with open(path) as f:
        step, loss = json.load(f)
    print(f"resumed from step {step}")


def save():
    with open(path + ".tmp", "w") as f:
        json.dump([step, loss], f)
    os.replace(path + ".tmp", path)
    print(f"saved step {step}")


if __name__ == "__main__":
    while step < args.steps:
        if stop:
            save()
            sys.exit(143)
        time.sleep(0.05)  # stands for the work
        step, loss = step + 1, loss * 0.99
        if step % 10 == 0:
            print(f"step {step}/{args.steps} loss {loss:.4f}", flush=True)
        if step % 10 == 0:
            save()
    save()
