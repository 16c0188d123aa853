"""Prints what scrimp said beside what was measured: python3 table.py OUT FAULT ..., or OUT peaks."""
import json
import os
import re
import sys

out, faults = sys.argv[1], sys.argv[2:]
expected = {"healthy": "", "loading": "data_loading", "small-batch": "small_batch", "fp32": "precision",
            "kernels": "small_batch", "item": "synchronisation", "save": "checkpointing", "set-up": "set_up",
            "copies": "host_device_copies"}


def read(name):
    try:
        with open(os.path.join(out, name)) as f:
            return f.read()
    except OSError:
        return ""


def rate(name):
    found = re.findall(r"rate=([0-9.]+)", read(name))
    return float(found[-1]) if found else None


def causes(name):
    try:
        return [(c["class"], (c["saving_share"] or {}).get("value")) for c in json.loads(read(name))["causes"]]
    except (ValueError, KeyError):
        return [("no report", None)]


def said(list):
    return ", ".join(c if v is None else f"{c} {100 * v:.0f} %" for c, v in list) or "none"


if faults == ["peaks"]:
    print("run\tpeak measured, GB\testimated\tlow\thigh\ttokens/s measured\testimated\tlow\thigh")
    for line in read("peaks.tsv").splitlines():
        run, measured, estimated = line.split("\t")
        m, e = json.loads(measured or "{}"), json.loads(estimated)
        e = e.get("options", [e])[0]
        peak, pace = e["peak_memory_gb"], e["throughput"]
        row = [m.get("peak", 0) / 1e9, *(peak[k] for k in ("value", "low", "high")), m.get("tokens_s", 0),
               *(pace[k] for k in ("value", "low", "high"))]
        print(run + "\t" + "\t".join(f"{v:.4g}" for v in row))
    sys.exit()
for fault in faults:
    slow, quick = rate(fault + ".log"), rate(fault + ".fixed.log")
    saved = f"{100 * (1 - slow / quick):.0f} %" if slow and quick else "?"
    print(f"{fault}: expected {expected.get(fault) or 'none'}, the fix saves {saved} ({slow} to {quick} tokens/s)")
    print(f"    telemetry: {said(causes(fault + '.json'))}")
    print(f"    with a trace: {said(causes(fault + '.both.json'))}")
