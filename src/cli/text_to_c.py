#!/usr/bin/env python3
"""text_to_c.py OUTPUT FILE...: each file as a C string with its name, such as environment_py for environment.py."""

import re
import sys
from pathlib import Path

output, *files = map(Path, sys.argv[1:])
source = ""
for file in files:
    lines = [line.replace("\\", "\\\\").replace('"', '\\"') for line in file.read_text().splitlines()]
    name = re.sub(r"\W", "_", file.name)
    source += f"extern const char {name}[];\nconst char {name}[] =\n" + "\n".join(f'    "{line}\\n"' for line in lines) + ";\n"
output.write_text(source)
