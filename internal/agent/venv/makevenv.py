# Makes a virtual environment of the Python that runs this, as which its packages are found too,
# with commands of theirs that run in it. It needs no network, and no ensurepip where pip is there.
import sys

sys.path = [p for p in sys.path if p]  # not the work folder: a file of it may have the name of a module
import importlib.util
import os
import site
import venv

try:
    import importlib.metadata
except ImportError:  # before Python 3.8
    packages_found = []
else:
    packages_found = importlib.metadata.distributions()

to = sys.argv[1]
pip = importlib.util.find_spec("pip") is not None
bundled = importlib.util.find_spec("ensurepip") is not None
venv.EnvBuilder(system_site_packages=True, symlinks=True, with_pip=bundled and not pip).create(to)

# A virtual environment of a virtual environment has the packages of neither it nor its user.
packages = os.path.join(to, "lib", "python%d.%d" % sys.version_info[:2], "site-packages")
found = site.getsitepackages() if sys.prefix != sys.base_prefix else []
if site.ENABLE_USER_SITE:
    found.append(site.getusersitepackages())
with open(os.path.join(packages, "scrimp_found.pth"), "w") as f:
    for folder in found:
        f.write("import site; site.addsitedir(%r)\n" % folder)

COMMAND = """#!/bin/sh
'''exec' "%s" "$0" "$@"
' '''
import sys
from %s import %s
sys.exit(%s())
"""


def command(name, module, call):
    path = os.path.join(to, "bin", name)
    if os.path.basename(name) == name and not os.path.lexists(path):
        with open(path, "w") as f:
            f.write(COMMAND % (os.path.join(to, "bin", "python3"), module, call.split(".")[0], call))
        os.chmod(path, 0o755)


if pip:  # whatever the pip beside this Python runs in
    for name in ("pip", "pip3"):
        command(name, "pip._internal.cli.main", "main")
for package in packages_found:
    for entry in package.entry_points:
        module, _, call = entry.value.split("[")[0].strip().partition(":")
        if entry.group == "console_scripts" and call:
            command(entry.name, module, call.strip())
print("scrimp: set-up: packages go into a virtual environment of %s (%d.%d.%d), which ends with the machine"
      % ((sys.executable,) + sys.version_info[:3]))
