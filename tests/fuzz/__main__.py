"""Coverage-guided fuzzing: `python -m tests.fuzz TARGET [libFuzzer's arguments]`, such as
`python -m tests.fuzz decision -max_total_time=300`. Needs atheris, which is in none of the lock files: it has wheels
for few versions of Python, and CI does without (`tests/unit/hostile`). The target `operator` runs the operator as a
whole on objects made by chance, and needs none."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import mkdtemp


def main() -> int:
    """Fuzz one target until libFuzzer ends it or finds something (exit code 77)."""
    if sys.argv[1:2] == ["operator"]:
        from tests.fuzz import operator
        from tests.fuzz.targets import quiet

        quiet()
        return operator.main(sys.argv[2:])
    try:
        import atheris  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        print("tests.fuzz: atheris is not installed: pip install atheris", file=sys.stderr)
        return 2
    with atheris.instrument_imports(include=["hvpa", "croniter"]):
        from tests.fuzz.targets import TARGETS, quiet, seeds
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        print(
            f"usage: python -m tests.fuzz {{operator,{','.join(TARGETS)}}} [-max_total_time=SECONDS …]",
            file=sys.stderr,
        )
        return 2
    quiet()
    target, arguments = TARGETS[sys.argv[1]], sys.argv[2:]
    corpus = Path(os.environ.get("HVPA_FUZZ_CORPUS") or mkdtemp(prefix="hvpa-fuzz-")) / sys.argv[1]
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds(sys.argv[1])):
        (corpus / f"seed-{number}").write_bytes(seed)
    atheris.Setup([sys.argv[0], f"-artifact_prefix={corpus}-", *arguments, str(corpus)], target)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
