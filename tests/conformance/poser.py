"""An adapter for the test, which gives answers out of the files. The variable POSE says which: "right", "other" (each case's second answer),
"bit" (the right one with one bit turned), "more" (the right out, no lse), "shape", "error". Others do as they say: "missing", "slow" to start,
"broken" (it does not start), "away" (it ends before it starts), "crash", "hang" and "leave" at one case, "once:FILE" (crash, and start no second
time), "noise" (what it prints is no text), "note:FILE" (writes a file if it is asked at all)."""
import copy
import os
import signal
import time

from arrays import Array, from_bytes

POSE, _, FILE = os.environ.get("POSE", "right").partition(":")


class Adapter:
    name = "Etalon, a poser"

    def __init__(self, settings):
        if POSE == "missing":
            raise ImportError("no such thing")
        if POSE == "slow":
            time.sleep(50)
        if POSE == "broken":
            raise RuntimeError("no such processor")
        if POSE == "away":
            os._exit(0)
        if POSE == "once" and os.path.exists(FILE):
            raise RuntimeError("was here before")
        if POSE in ("once", "note"):
            open(FILE, "w").close()
        self.version = POSE

    def supports(self, case):
        return ""

    def run(self, case):
        print("chatter")
        if POSE == "noise":
            os.write(2, b"\xff\xfe")
        if POSE in ("crash", "once") and case.id == "causal-decode":
            os.kill(os.getpid(), signal.SIGSEGV)
        if POSE == "hang" and case.id == "causal-decode":
            time.sleep(50)
        if POSE == "leave" and case.id == "causal-decode":
            os._exit(0)
        if POSE == "other":
            name, answer = next(((name, x) for name, x in case.answers.items() if name != case.expected and x is not None), (None, None))
            return {"out": answer, **{key: x for key, x in case.bits.items() if key == "lse"}} if name else case.bits
        if not case.bits or POSE == "error":
            raise ValueError("not with me")
        result = copy.deepcopy(case.bits)
        if POSE == "bit":
            data = bytearray(result["out"].data())
            data[-result["out"].size()] ^= 1
            result["out"] = from_bytes(result["out"].kind, result["out"].shape, bytes(data))
        if POSE == "shape":
            result["out"] = Array(result["out"].kind, result["out"].shape[::-1], result["out"].values)
        if POSE == "more":
            del result["lse"]
        return result
