"""What the GPU process does with its requests.

It keeps a context, loaded modules, inputs and references warm from case to case, announces every stage
before it starts, and never judges a deadline: the parent does. After any failure it reports and
leaves: a context that saw one is not reused.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from harness.execute import canary, relations, timing
from harness.execute.arena import Arena, Bytes, Elements, poison_word
from harness.execute.channel import Channel
from harness.execute.compare import describe, examine
from harness.execute.data import Data, DataCache, data_key, expected_of
from harness.execute.engine import CubinEngine, Engine
from harness.execute.gpu import DriverError, Gpu
from harness.execute.protocol import Launch, Observation, Outcome, Relation, RelationSeen, Stage, Timing

FAULTS = frozenset(
    f"CUDA_ERROR_{name}"
    for name in (
        "ILLEGAL_ADDRESS",
        "MISALIGNED_ADDRESS",
        "ILLEGAL_INSTRUCTION",
        "INVALID_ADDRESS_SPACE",
        "INVALID_PC",
        "HARDWARE_STACK_ERROR",
        "LAUNCH_FAILED",
        "LAUNCH_TIMEOUT",
        "ASSERT",
        "ECC_UNCORRECTABLE",
        "CONTAINED",
        "TENSOR_MEMORY_LEAK",
        "EXTERNAL_DEVICE",
        "UNKNOWN",
    )
)
"""What the driver says of a kernel that trapped. The context does not survive it."""


class Session:
    """One GPU and what is kept warm on it; runs launches one after the other."""

    def __init__(self, gpu: Gpu, channel: Channel, engine: Engine | None = None) -> None:
        self.gpu = gpu
        self.engine = engine or CubinEngine(gpu)
        self.channel = channel
        self.data = DataCache()

    def observe(self, launch: Launch) -> Observation:
        """Run one case; every way it can end short of killing this process is an observation."""
        self.channel.enter(Stage.LOAD, launch.case)
        try:
            return self._run(launch)
        except DriverError as error:
            return self._failed(launch, error)
        except MemoryError as error:
            return self._ended(launch, Outcome.HOST_ERROR, message=f"the host ran out of memory: {error}")
        except Exception:
            return self._ended(launch, Outcome.HOST_ERROR, message=traceback.format_exc(limit=20))

    def _run(self, launch: Launch) -> Observation:
        gpu, enter = self.gpu, self.channel.enter
        self.engine.load(launch)

        enter(Stage.PREPARE)
        data = self.data.get(launch)
        arenas = {a.name: Arena.of(a) for a in launch.arrays}
        memory, keep = self._place(launch, arenas, data)
        queued = [
            self.engine.prepare(launch, {n: memory[n, r] + arenas[n].first for n in arenas})
            for r in range(launch.repeats)
        ]
        gpu.finish()
        del keep

        if self.engine.compiles:  # the first launch returns once the kernel is compiled and queued
            enter(Stage.COMPILE)
            queued.pop(0)()
        enter(Stage.LAUNCH)
        for one in queued:
            one()
        gpu.finish()

        enter(Stage.READ_BACK)
        after: dict[tuple[str, int], Bytes] = {}
        for (name, repeat), address in memory.items():
            if repeat == 0 or arenas[name].array.role != "in":
                after[name, repeat] = gpu.download(address, arenas[name].size)

        enter(Stage.COMPARE)
        outputs = tuple(
            examine(
                arenas[a.name],
                [after[a.name, r] for r in range(launch.repeats)],
                data.expected.get(a.name),
            )
            for a in launch.arrays
            if a.role != "in"
        )
        changed = {
            a.name: count
            for a in launch.arrays
            if a.role == "in"
            and (count := _changed(after[a.name, 0], arenas[a.name].image(data.inputs[a.name])))
        }
        first = {a.name: arenas[a.name].bits(after[a.name, 0]) for a in launch.arrays if a.role != "in"}
        related = tuple(seen for one in launch.relations for seen in self._relate(launch, one, data, first))
        timing = self._time(launch, arenas, data) if launch.timed else None
        return self._ended(
            launch,
            Outcome.DONE,
            repeats=launch.repeats,
            outputs=outputs,
            inputs_changed=changed,
            timing=timing,
            relations=related,
            data=data_key(launch)[:16],
        )

    def _relate(
        self, launch: Launch, relation: Relation, data: Data, first: dict[str, Elements]
    ) -> list[RelationSeen]:
        """Go the second way, and set its outputs beside `first`, the bits of the first."""
        runs = relations.runs(launch, relation, data.inputs)
        images = [self._launch_once(run) for run in runs]
        found = []
        for name, base in first.items() if runs else ():
            arenas = [Arena.of(next(a for a in run.launch.arrays if a.name == name)) for run in runs]
            memories = [image[name] for image in images]
            bits = [arena.bits(memory) for arena, memory in zip(arenas, memories, strict=True)]
            got, must = relations.wanted(launch, relation, name, base, bits)
            differing = int(np.count_nonzero(got != must))
            outside = max(arena.outside_bytes(m) for arena, m in zip(arenas, memories, strict=True))
            seen = RelationSeen(relation.kind, name, int(got.size), differing, outside_bytes=outside)
            if differing:
                again = [
                    examine(arena, [memory], expected_of(run.launch, run.inputs).get(name))
                    for arena, memory, run in zip(arenas, memories, runs, strict=True)
                ]
                seen = replace(
                    seen, beyond_bound=sum(o.beyond_bound for o in again), pattern=describe(got != must)
                )
            found.append(seen)
        return found

    def _launch_once(self, run: relations.Run) -> dict[str, Bytes]:
        """One launch on memory of its own; images of the arenas of everything it may write."""
        gpu, enter, launch = self.gpu, self.channel.enter, run.launch
        enter(Stage.PREPARE)
        arenas = {a.name: Arena.of(a) for a in launch.arrays}
        memory, keep = self._place(launch, arenas, Data(run.inputs, {}))
        queue = self.engine.prepare(launch, {n: memory[n, 0] + arenas[n].first for n in arenas})
        gpu.finish()
        del keep
        enter(Stage.LAUNCH)
        queue()
        gpu.finish()
        enter(Stage.READ_BACK)
        written = {
            a.name: gpu.download(memory[a.name, 0], arenas[a.name].size)
            for a in launch.arrays
            if a.role != "in"
        }
        enter(Stage.COMPARE)
        return written

    def _place(
        self, launch: Launch, arenas: dict[str, Arena], data: Data
    ) -> tuple[dict[tuple[str, int], int], list[Bytes]]:
        """Lay out and fill device memory: inputs once, what is written once per repeat launch.

        Returns addresses by array and repeat, and the host images that must outlive the copies.
        """
        gpu = self.gpu
        copies = {a.name: 1 if a.role == "in" else launch.repeats for a in launch.arrays}
        gpu.reserve(sum(arena.size * copies[name] for name, arena in arenas.items()))
        memory: dict[tuple[str, int], int] = {}
        keep: list[Bytes] = []
        for name, arena in arenas.items():
            for repeat in range(launch.repeats):
                if repeat >= copies[name]:
                    memory[name, repeat] = memory[name, 0]
                    continue
                address = memory[name, repeat] = gpu.allocate(arena.size)
                if name in data.inputs:
                    keep.append(arena.image(data.inputs[name], repeat))
                    gpu.upload(address, keep[-1])
                else:
                    gpu.fill(address, arena.size, poison_word(arena.itemsize, repeat))
        return memory, keep

    def _time(self, launch: Launch, arenas: dict[str, Arena], data: Data) -> Timing:
        """Place everything afresh, with room for the flush and the copy, and measure."""
        self.channel.enter(Stage.TIMING)
        gpu = self.gpu
        moved = sum(
            arena.itemsize * _count(arena.array.shape) * (2 if arena.array.role == "inout" else 1)
            for arena in arenas.values()
        )
        flush, copied = timing.flush_bytes(gpu), timing.copy_bytes(moved)
        gpu.reserve(sum(arena.size for arena in arenas.values()) + flush + 2 * copied + 4096)
        images = {
            name: arena.image(data.inputs[name]) for name, arena in arenas.items() if name in data.inputs
        }
        addresses = {name: gpu.allocate(arena.size) for name, arena in arenas.items()}
        for name, image in images.items():
            gpu.upload(addresses[name], image)
        spare, source, target = gpu.allocate(flush), gpu.allocate(copied), gpu.allocate(copied)
        gpu.finish()
        first = {name: address + arenas[name].first for name, address in addresses.items()}
        return timing.measure(gpu, self.engine.prepare(launch, first), moved, spare, source, target)

    def _failed(self, launch: Launch, error: DriverError) -> Observation:
        if error.error in FAULTS:
            outcome = Outcome.FAULT
        elif error.error == "CUDA_ERROR_OUT_OF_MEMORY":
            outcome = Outcome.OUT_OF_MEMORY
        else:
            outcome = Outcome.REFUSED
        return self._ended(launch, outcome, error=error.error, call=error.call, message=str(error))

    def _ended(self, launch: Launch, outcome: Outcome, **seen: Any) -> Observation:
        return Observation(
            case=launch.case,
            outcome=outcome,
            stage=self.channel.stage,
            seconds=self.channel.seconds(),
            **seen,
        )


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _changed(before: Bytes, after: Bytes) -> int:
    return 0 if np.array_equal(before, after) else int(np.count_nonzero(before != after))


def serve(channel: Channel, driver: Any, engine_of: Callable[[Gpu], Engine] = CubinEngine) -> None:
    """Warm up, say so, and answer requests until told to leave."""
    gpu = Gpu(driver)
    session = Session(gpu, channel, engine_of(gpu))
    channel.say("ready", name=session.gpu.name, arch=session.gpu.arch)
    while True:
        request = channel.next_request()
        if request["do"] == "run":
            observation = session.observe(Launch.from_json(request["launch"]))
            channel.say("observation", observation=observation.to_json())
            if observation.outcome is not Outcome.DONE:  # nothing is reused after a failure
                return
        elif request["do"] == "canary":
            try:
                problem = canary.sing(session.gpu)
            except DriverError as error:
                problem = str(error)
            channel.say("canary", problem=problem)
        else:
            return
