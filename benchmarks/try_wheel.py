"""Install the newest wheel of a folder into a fresh environment, in a path with spaces, and use it as a user would.

python benchmarks/try_wheel.py dist
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

DOCUMENTS = [
    {"id": "light", "title": "Skerrow Light", "text": "Skerrow Light was designed by Ilse Varn."},
    {"id": "varn", "title": "Ilse Varn", "text": "Ilse Varn was born in the village of Kettlemoor."},
]


def run(*command: str | Path, stdin: str | None = None) -> str:
    """Standard output of a command that must succeed."""
    done = subprocess.run([str(part) for part in command], input=stdin, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    """Exit 0 if the installed wheel adds two documents and recalls both for a question that needs both."""
    wheel = max(Path(sys.argv[1]).glob("*.whl"), key=lambda path: path.stat().st_mtime)
    with tempfile.TemporaryDirectory(prefix="a path with spaces ") as folder:
        environment = Path(folder) / "fresh environment"
        venv.create(environment, with_pip=True)
        binaries = environment / ("Scripts" if sys.platform == "win32" else "bin")
        run(binaries / "python", "-m", "pip", "install", "--quiet", wheel)
        ecphory, store = binaries / "ecphory", Path(folder) / "a store.ecphory"
        print(run(ecphory, "--version").strip())
        records = "\n".join(json.dumps(document) for document in DOCUMENTS)
        run(ecphory, "--store", store, "add", "-", stdin=records)
        recalled = json.loads(
            run(ecphory, "--store", store, "recall", "Where was the designer of Skerrow Light born?", "--json")
        )
        found = {evidence["chunk"]["document_id"] for evidence in recalled["chunks"]}
        if found != {"light", "varn"}:
            sys.exit(f"recalled {found}, not both documents")
        typed = run(
            binaries / "python",
            "-c",
            "import ecphoryrag, pathlib as p; print((p.Path(ecphoryrag.__file__).parent/'py.typed').exists())",
        )
        if typed.strip() != "True":
            sys.exit("py.typed is not in the wheel")
    print(f"{wheel.name}: installs and recalls in a path with spaces")


if __name__ == "__main__":
    main()
