"""Run every benchmark in turn, each in a process of its own: `python -m tests.benchmarks [name ...]`, or `make bench`.

They print; nothing here asserts a time. Run them on a machine that is doing nothing else.
"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> int:
    wanted = sys.argv[1:]
    # One thread everywhere, so that ratios compare code and not schedulers. The two OPENBLAS_CORE settings that some
    # machines carry pick a slow kernel for a current NumPy.
    env = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
    env |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    env["PYTHONPATH"] = str(HERE.parents[1])
    failed = 0
    for path in sorted(HERE.glob("bench_*.py")):
        if not wanted or path.stem.removeprefix("bench_") in wanted:
            print(f"\n=== {path.stem.removeprefix('bench_')}", flush=True)
            failed |= subprocess.run([sys.executable, path], env=env, check=False).returncode
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
