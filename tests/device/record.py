#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lines of results.jsonl, one for each measurement of first_hour.sh.

  record.py facts FILE DEVICE TESSERA                                      the machine and its versions
  record.py add FILE PART DEVICE ran NAME EXIT SECONDS LOG COMMAND...      a measurement that ran
  record.py add FILE PART DEVICE impossible NAME 0 0 REASON                one that cannot run here
  record.py passed FILE NAME                                               exit code 0 if it has passed
  record.py nccl FILE VERSION                                              exit code 0 if NCCL is as new as VERSION
  record.py count FILE PART...                                             what is missing; exit code 1 if any failed
"""
import ctypes
import datetime
import json
import re
import subprocess
import sys
from pathlib import Path


def catalogue():
    """Name -> (part, text), in the order of the file."""
    rows = Path(__file__).with_name("catalogue.tsv").read_text().splitlines()
    return {name: (part, text) for part, name, text in (row.split("\t") for row in rows)}


def lines(file):
    path = Path(file)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def latest(file):
    """The last line of each measurement; one that ran takes the place of one that could not."""
    found = {}
    for line in lines(file):
        if "name" in line:
            found[line["name"]] = line
    return found


def append(file, line):
    with open(file, "a") as out:
        out.write(json.dumps(line) + "\n")


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def nccl_version():
    """Of the library that a program would load, as 2.28.9; empty where there is none."""
    try:
        number = ctypes.c_int()
        ctypes.CDLL("libnccl.so.2").ncclGetVersion(ctypes.byref(number))
        return f"{number.value // 10000}.{number.value // 100 % 100}.{number.value % 100}"
    except OSError:
        return ""


def facts(file, device, tessera):
    line = {"date": now(), "device": device, "tessera": output_of(tessera, "--version").partition("\n")[0]}
    if device == "cuda":
        query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        line["gpu"], _, line["driver"] = (output_of(*query).splitlines() or [""])[0].partition(", ")
        line["nccl"] = nccl_version()
        line["torch"] = output_of(sys.executable, "-c", "import torch; print(torch.__version__)")
        line["sanitizer"] = (output_of("compute-sanitizer", "--version").splitlines() or [""])[-1]
    append(file, {key: value for key, value in line.items() if value})


def now():
    return datetime.datetime.now().strftime("%Y-%m-%d %H:%M")


def values_of(text):
    """Lines "@ NAME: NUMBER UNIT"; the name may have blanks."""
    found = {}
    for name, number, unit in re.findall(r"^@ (.+?): ([-+.0-9einfa]+)(?: (.*))?$", text, re.M):
        found[name] = [float(number), unit]
    return found


ROOT = Path(__file__).resolve().parents[2]

# What PMIx and mpirun say around a program's output, and GoogleTest before and after its tests.
NOISE = r"^@ |pmix_|PMIX|dlopen error|^ +Perhaps a missing symbol|^-{20}|^\[[-=]+\]|listed below:$|^Google Test trace:$|^ +(Process name|Exit code): |^info: placement" \
        r"|^mpirun (detected|noticed)|^the job to be terminated|^Primary job|^a non-zero exit code"


def said(text):
    """What a failure said: lines with words of failure, else the last ones. GoogleTest's "Failure" goes on in the next line."""
    text = text.replace(f"{ROOT}/", "")
    text = re.sub(r"\x1b\[[0-9;]*m", "", text).replace(": Failure\n", ": Failure: ").replace("equality of these values:\n", "equality of")
    kept = [line for line in text.splitlines() if line.strip() and not re.search(NOISE, line)]
    telling = [line for line in kept if not re.match(r"\[ +(RUN|OK) +\]", line) and re.search(r"error|fail|WRONG|terminate|race:|====", line, re.I)]
    return (telling or kept)[:3] + kept[-3:]


def command_of(words):
    """As a person would type it: without folders, and without the functions of measure.sh."""
    text = " ".join(word.rpartition("/")[2] if word.startswith("/") else word for word in words)
    for pattern, plain in ((r"^alone \w+ ", ""), (r"^ranks (\d+) \w+ ", r"mpirun -n \1 "), (r"^bench (\d+) ", r"mpirun -n \1 tessera bench "), (r"^(life|speed) ", r"\1.sh tessera ")):
        text = re.sub(pattern, plain, text)
    return text


def program_of(file):
    """The program that the last facts name, as in "tessera 0.1.0 (0688ddbbba15)"."""
    named = [line["tessera"] for line in lines(file) if "name" not in line and line.get("tessera")]
    return {"tessera": named[-1]} if named else {}


def add(file, part, device, status, name, code, seconds, rest):
    if name not in catalogue():
        sys.exit(f"catalogue.tsv has no measurement '{name}'")
    line = {"part": part, "name": name, "device": device, "date": now()} | program_of(file)
    if status == "impossible":
        append(file, line | {"outcome": "impossible", "reason": rest[0]})
        print(f"cannot   {name}: {rest[0]}")
        return
    text = Path(rest[0]).read_text(errors="replace")
    if code == "0" and re.search(r"PASSED  \].{0,8}(?<![0-9])0 tests", text):
        code = "1"  # a filter that matches nothing
    if code == "0" and re.search(r"^race:", text, re.M):
        code = "1"  # the checker of the simulated GPU
    outcome = {"0": "passed", "124": "timed out", "137": "timed out"}.get(code, "failed")
    line |= {"outcome": outcome, "exit": int(code), "seconds": int(seconds), "command": command_of(rest[1:]), "values": values_of(text)}
    if outcome != "passed":
        line["said"] = said(text)
    append(file, line)
    print(f"{outcome:<8} {name} ({seconds} s)")
    for told in line.get("said", []):
        print(f"         {told[:160]}")


def count(file, parts):
    """What of these parts is missing, and whether anything has failed."""
    found = latest(file)
    missing = [name for name, (part, _) in catalogue().items() if part in parts and name not in found]
    wrong = [name for name, line in found.items() if line["part"] in parts and line["outcome"] in ("failed", "timed out")]
    print(f"{len(found)} measurements, {len(wrong)} wrong, {len(missing)} not run yet" + "".join(f"\n  not run yet: {n}" for n in missing))
    return 1 if wrong or missing else 0


def main(arguments):
    verb, file, *rest = arguments
    if verb == "facts":
        return facts(file, *rest)
    if verb == "add":
        part, device, status, name, code, seconds, *rest = rest
        return add(file, part, device, status, name, code, seconds, rest)
    if verb == "passed":
        line = latest(file).get(rest[0])
        return 0 if line and line["outcome"] == "passed" else 1
    if verb == "nccl":
        wanted = tuple(int(n) for n in rest[0].split("."))
        return 0 if tuple(int(n) for n in (nccl_version() or "0").split(".")) >= wanted else 1
    return count(file, rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
