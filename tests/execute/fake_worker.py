"""A GPU process without a GPU: speaks the real protocol, and misbehaves as the launch's symbol says.

`python fake_worker.py [--start=WAY] [--canary=FILE] [--log=FILE] REQUEST RESPONSE STACK`. Symbols: ok, slow,
wrong, refused, fault, hang_if_timed; HOW:STAGE with HOW one of hang, crash, exit, garbage; lie_case,
lie_stage, long_line, flood, orphan, stubborn; and once:PATH:SYMBOL, which is SYMBOL as long as PATH does
not exist, then ok.
Dumps "core" as the driver does where the environment asks for it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from harness.execute.channel import Channel
from harness.execute.protocol import Launch, Observation, Outcome, OutputSeen, Stage, Timing

STAGES = (Stage.LOAD, Stage.PREPARE, Stage.LAUNCH, Stage.READ_BACK, Stage.COMPARE)


def sleep_for_ever() -> None:
    while True:
        time.sleep(60)


def misbehave(channel: Channel, how: str) -> None:
    if how == "hang":
        sleep_for_ever()
    elif how == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif how == "exit":
        print("the last words", file=sys.stderr, flush=True)
        os._exit(7)
    elif how == "garbage":
        os.write(channel._response_fd, b"Traceback: this is no message\n")
        sleep_for_ever()


def run(channel: Channel, launch: Launch) -> Observation | None:
    symbol = launch.symbol
    if symbol.startswith("once:"):
        _, path, symbol = symbol.split(":", 2)
        if Path(path).exists():
            symbol = "ok"
        Path(path).touch()
    how, _, where = symbol.partition(":")
    if symbol == "orphan":
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", *sys.argv[1:]])
        how, where = "hang", "launch"
    if symbol == "stubborn":
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        how, where = "hang", "launch"
    for index, stage in enumerate(STAGES):
        channel.enter(stage, launch.case if index == 0 else None)
        if symbol == "flood" and stage is Stage.LAUNCH:
            for _ in range(200):
                os.write(1, b'{"say":"observation"}\n' * 1000)
        if symbol == "lie_case" and stage is Stage.LAUNCH:
            channel.say("stage", case="another", stage="compare")
        if symbol == "lie_stage" and stage is Stage.LAUNCH:
            channel.say("stage", case=launch.case, stage="lunch")
        if symbol == "long_line" and stage is Stage.LAUNCH:
            while True:
                os.write(channel._response_fd, b"x" * 65536)
        if where == stage.value:
            misbehave(channel, how)
        if stage is Stage.LAUNCH and symbol in ("fault", "refused"):
            error = "CUDA_ERROR_ILLEGAL_ADDRESS" if symbol == "fault" else "CUDA_ERROR_INVALID_VALUE"
            outcome = Outcome.FAULT if symbol == "fault" else Outcome.REFUSED
            return Observation(launch.case, outcome, stage, error=error, call="cuEventQuery")
        if symbol == "hang_if_timed" and launch.timed and stage is Stage.LAUNCH:
            sleep_for_ever()
        if symbol == "slow" and stage is Stage.LAUNCH:
            time.sleep(0.1)
    output = OutputSeen("y", "ab" * 32, 10, compared=True, beyond_bound=3 if symbol == "wrong" else 0)
    timing = None
    if launch.timed:
        channel.enter(Stage.TIMING)
        timing = Timing(30.0, 2.0, 3, 1000, 1e9, 2e9, 500, (29.0, 30.0, 31.0))
    return Observation(
        launch.case,
        Outcome.DONE,
        channel.stage,
        seconds=channel.seconds(),
        repeats=launch.repeats,
        outputs=(output,),
        timing=timing,
    )


def note(log: str | None, what: str, launch: Launch) -> None:
    """One line per start and end of a case: monotonic seconds, pid, what, case, timed or not."""
    if log:
        with Path(log).open("a") as file:
            file.write(f"{time.monotonic()} {os.getpid()} {what} {launch.case} {launch.timed}\n")


def serve(channel: Channel, canary: str | None, log: str | None) -> None:
    channel.say("ready", name="fake", arch="sm_90", pid=os.getpid())
    while True:
        request: dict[str, Any] = channel.next_request()
        if request["do"] == "canary":
            if canary:
                with Path(canary).open("a") as file:
                    file.write(f"{os.getpid()}\n")
            bad = canary is not None and Path(canary + ".bad").exists()
            channel.say("canary", problem="it croaked" if bad else None)
            continue
        launch = Launch.from_json(request["launch"])
        note(log, "start", launch)
        observation = run(channel, launch)
        note(log, "end", launch)
        if observation is not None:
            channel.say("observation", observation=observation.to_json() | {"message": f"pid {os.getpid()}"})
            if observation.outcome is not Outcome.DONE:
                return


def dump_when_told() -> None:
    """The driver's part: open the pipe, wait for a byte, dump, end the process."""
    pipe = os.environ["CUDA_COREDUMP_PIPE"]
    os.mkfifo(pipe)

    def wait() -> None:
        with open(pipe, "rb") as told:
            told.read(1)
        Path(os.environ["CUDA_COREDUMP_FILE"]).write_bytes(b"a core dump")
        os._exit(134)

    threading.Thread(target=wait, daemon=True).start()


def main() -> None:
    *options, request, response, stack = sys.argv[1:]
    settings = dict(option.removeprefix("--").split("=", 1) for option in options)
    channel = Channel(int(request), int(response), int(stack))
    channel.enter(Stage.START_UP)
    start = settings.get("start", "")
    if start == "die":
        print("no GPU today", file=sys.stderr, flush=True)
        os._exit(1)
    if start == "broken":
        channel.say("broken", message="DriverError: cuInit answered CUDA_ERROR_NO_DEVICE", traceback="")
        return
    if start == "hang":
        sleep_for_ever()
    if os.environ.get("CUDA_ENABLE_USER_TRIGGERED_COREDUMP") == "1":
        dump_when_told()
    serve(channel, settings.get("canary"), settings.get("log"))


if __name__ == "__main__":
    main()
