"""Runs each application's use on Tidewheel and on a stock server, and prints a table:
`python run.py TIDEWHEEL REDIS NODE_FOLDER [--only NAME]`. The stock server is the control: a use
that fails on both says nothing about Tidewheel. Exits with 1 if one fails on Tidewheel alone."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TIDEWHEEL, REDIS, NODE_FOLDER = sys.argv[1:4]
ONLY = sys.argv[5] if sys.argv[4:5] == ["--only"] else None
LIMIT_SECONDS = 90


class Server:
    """A server that is started anew for each use and keeps nothing, so that no use meets another's
    keys."""

    def __init__(self, *command):
        self.command = command

    def run(self, use):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        process = subprocess.Popen(
            [*self.command, "--port", port], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            self.wait(port)
            return reason(use, port)
        finally:
            process.terminate()
            process.wait()

    @staticmethod
    def wait(port):
        for _ in range(200):
            try:
                return socket.create_connection(("127.0.0.1", port), 1).close()
            except OSError:
                time.sleep(0.02)
        sys.exit("a server does not start")


def reason(use, port):
    """Why it failed; nothing if it did not."""
    with tempfile.TemporaryFile("w+") as output:
        try:
            status = subprocess.run(
                [*use, port],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=LIMIT_SECONDS,
            ).returncode
        except subprocess.TimeoutExpired:
            return f"takes more than {LIMIT_SECONDS} s"
        output.seek(0)
        lines = output.read().splitlines()
    if status == 0:
        return None
    errors = [line.strip() for line in lines if re.match(r"\s*[\w. \[]*Error\b\]?:? ?\w", line)]
    return (errors or lines or ["it says nothing"])[-1][:120]


def uses(*command):
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        name, what = line.split("\t")
        if ONLY in (None, name):
            yield name, what, [*command, name]


def page_examples():
    """The programs of two pages. Redis has no `CL.THROTTLE`, and no streams of what expires."""
    blocks = []
    for page in ["locks-limits-queues.md", "expired-events.md"]:
        with open(os.path.join(HERE, "../docs", page)) as text:
            blocks += re.findall(r"<!-- applications: (\w+) -->\n```\w+\n(.*?)```", text.read(), re.S)
    for language, code in blocks:
        name = os.path.join(NODE_FOLDER, "page." + {"python": "py", "node": "mjs"}[language])
        with open(name, "w") as file:
            file.write(code)
        yield [{"python": sys.executable}.get(language, language), name]


def main():
    # Packages of Node are found beside the file that imports them.
    node = shutil.copy(os.path.join(HERE, "uses.mjs"), NODE_FOLDER)
    tidewheel = Server(TIDEWHEEL, "--threads", "2", "--save", "")
    control = Server(REDIS, "--save", "")
    print("| application | what it does here | Tidewheel | Redis 8.2 |\n|---|---|---|---|")
    failed = 0
    python = os.path.join(HERE, "uses.py")
    for name, what, use in [*uses(sys.executable, python), *uses("node", node)]:
        ours, theirs = tidewheel.run(use), control.run(use)
        failed += bool(ours and not theirs)
        print(f"| {name} | {what} | {ours or 'works'} | {theirs or 'works'} |", flush=True)
    for program in page_examples() if ONLY is None else []:
        if why := tidewheel.run(program):
            failed += 1
            print(f"\n{program[1]}: {why}")
    sys.exit(1 if failed else 0)


main()
